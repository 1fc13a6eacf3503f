"""Commands on nodes and devices: lists, cordon, and the map of who holds what."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from gateway.cli import exits
from gateway.cli.device_history import history
from gateway.cli.device_types import device_types
from gateway.cli.options import DeviceId, Output
from gateway.cli.output import Column, Format, console, labelled, show_data, show_list, show_one
from gateway.cli.session import client
from gateway.cli.terminal import clean, cores, gibibytes
from gateway.core.resources.words import counted
from gateway.core.vocabulary import DeviceHealth, DeviceKind

if TYPE_CHECKING:  # the models cost a tenth of a second, and most commands need none
    from gateway.schemas.views import DeviceView, NodeView, RoomForSize


def state_of(device: "DeviceView") -> str:
    """Give a device's state in one word."""
    # The strongest first: an absent device may still be marked held until its pod is seen gone.
    rules = (
        (not device.is_present, "absent"),
        (device.health is not DeviceHealth.HEALTHY, device.health.value),
        (device.is_foreign, "foreign"),
        (device.is_free, "free"),
    )
    return next((word for holds, word in rules if holds), "held")


def holder_of(device: "DeviceView") -> str:
    """Give who holds a device, or nothing."""
    if device.holder is None:
        return ""
    return f"{device.holder.job_name} {device.holder.pod_set} {device.holder.index}"


NODE_COLUMNS: "list[Column[NodeView]]" = [
    Column("NAME", lambda node: node.name),
    Column("TYPE", lambda node: node.machine_type),
    Column("HEALTH", lambda node: node.health.value if node.is_present else "absent"),
    Column("GPUS FREE", lambda node: f"{node.gpus_free}/{node.gpus_total}", is_number=True),
    Column("NICS FREE", lambda node: f"{node.rdma_free}/{node.rdma_total}", is_number=True),
    Column("CPU FREE", lambda node: cores(node.cpu_millis_free), is_number=True),
    Column("MEMORY FREE", lambda node: gibibytes(node.memory_bytes_free), is_number=True),
]
DEVICE_COLUMNS: "list[Column[DeviceView]]" = [
    Column("ID", lambda device: device.id, is_number=True),
    Column("NODE", lambda device: device.node),
    Column("KIND", lambda device: device.kind.value),
    Column("NAME", lambda device: device.name),
    Column("STATE", state_of),
    Column("HOLDER", holder_of),
    Column("NUMA", lambda device: device.numa, is_number=True),
    Column("RAIL", lambda device: device.rail if device.rail >= 0 else "", is_number=True),
    Column("PCI", lambda device: device.pci_address, is_wide=True),
    Column("UUID", lambda device: device.uuid, is_wide=True),
]
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
FREE, FOREIGN, SICK, ABSENT, HIDDEN = ".", "x", "!", "-", "#"
SIGNS = {"free": (FREE, "dim"), "absent": (ABSENT, "dim"), "foreign": (FOREIGN, "red")}
"""Sign and style of a device that nobody of ours holds; any other is sick."""
COLOURS = ("green", "cyan", "magenta", "yellow", "blue", "bright_red")


def node_app() -> typer.Typer:
    """Give the commands below `gateway node`."""
    app = typer.Typer(no_args_is_help=True, help="Nodes: ls, show, cordon, uncordon.")
    name_argument = typer.Argument(metavar="NODE", help="Its name.")

    @app.command("ls")
    def ls(output: Output = Format.TABLE) -> None:
        """List nodes.

        Example:
          gateway node ls
        """
        show_list(list(client().nodes.list()), NODE_COLUMNS, output, name="name")

    @app.command("show")
    def show(name: Annotated[str, name_argument], output: Output = Format.TABLE) -> None:
        """Show one node and its devices.

        Example:
          gateway node show dgx-h100-0
        """
        connection = client()
        node = connection.nodes.get(name)
        show_one(node, labelled(node, NODE_COLUMNS), output)
        if output is Format.TABLE:
            show_list(list(connection.devices.list(node=name)), DEVICE_COLUMNS, output)

    @app.command("cordon")
    def cordon(
        name: Annotated[str, name_argument],
        reason: Annotated[str, typer.Option(help="Why; shown in explain.", metavar="TEXT")] = "",
    ) -> None:
        """Admit nothing more onto a node; what runs goes on.

        Example:
          gateway node cordon dgx-h100-0 --reason "fan replaced until Friday"
        """
        node = client().nodes.cordon(name, reason)
        exits.say(f"node {node.name}: {node.health.value}")

    @app.command("uncordon")
    def uncordon(name: Annotated[str, name_argument]) -> None:
        """Admit onto a node again.

        Example:
          gateway node uncordon dgx-h100-0
        """
        node = client().nodes.uncordon(name)
        exits.say(f"node {node.name}: {node.health.value}")

    return app


def device_app() -> typer.Typer:
    """Give the commands below `gateway device`."""
    app = typer.Typer(no_args_is_help=True, help="Devices: ls, show, history, map, types.")
    node_option = typer.Option("--node", help="Only this node.", metavar="NODE")

    @app.command("ls")
    def ls(
        node: Annotated[str | None, node_option] = None,
        kind: Annotated[DeviceKind | None, typer.Option(help="Only this kind.")] = None,
        output: Output = Format.TABLE,
    ) -> None:
        """List devices and who holds them.

        Example:
          gateway device ls --node dgx-h100-0 --kind gpu -o wide
        """
        found = client().devices.list(node=node, kind=kind.value if kind else None)
        show_list(list(found), DEVICE_COLUMNS, output)

    @app.command("show")
    def show(
        device_id: DeviceId,
        output: Output = Format.TABLE,
    ) -> None:
        """Show one device.

        Example:
          gateway device show 7
        """
        device = client().devices.get(device_id)
        show_one(device, labelled(device, DEVICE_COLUMNS), output, name="id")

    app.command("history")(history)
    app.command("types")(device_types)

    @app.command("map")
    def device_map(
        node: Annotated[str | None, node_option] = None, output: Output = Format.TABLE
    ) -> None:
        """Draw who holds which GPU and NIC.

        A line for each node, a cell for each device, a letter for each job.

        Examples:
          gateway device map
          gateway device map --node dgx-h100-0
        """
        connection = client()
        devices = list(connection.devices.list(node=node))
        if output is not Format.TABLE:
            show_data([device.model_dump(mode="json") for device in devices], output)
            return
        for line in map_lines(devices):
            console().print(line, soft_wrap=True)
        for words in room_lines(connection.nodes.fragmentation().items if node is None else ()):
            console().print(words, soft_wrap=True, markup=False)

    return app


def map_lines(devices: "Sequence[DeviceView]") -> list[Text]:
    """Give the map: a line a node, a legend of the jobs, a legend of the signs."""
    letters = _letters(devices)
    nodes = sorted({device.node for device in devices})
    width = max(len("NODE"), *(len(node) for node in nodes), 0)
    lines = [Text(f"{'NODE':<{width}}  GPUs      NICs", style="bold")]
    if rails := _rails(devices):
        lines.append(Text(f"{'rail':<{width}}  {'':<10}{rails}", style="dim"))
    for node in nodes:
        line = Text(f"{clean(node):<{width}}  ")
        on_node = [device for device in devices if device.node == node]
        lines.append(line.append_text(_cells(on_node, letters)))
    counts = Counter(_jobs_holding(devices))
    for (name, job), letter in letters.items():
        words = f"{letter}  {clean(name)} ({counts[name, job]} devices)"
        lines.append(Text(words, style=_colour(letter)))
    signs = f"{FREE} free  {HIDDEN} held by others  {FOREIGN} foreign  {SICK} sick  {ABSENT} absent"
    lines.append(Text(signs, style="dim"))
    return lines


def room_lines(sizes: "Sequence[RoomForSize]") -> list[str]:
    """Say how far the free GPUs would go, a line for each size of pod."""
    told = [each for each in sizes if each.ideal]
    return [
        f"room for {each.fitting} of {each.ideal} pods of {counted(each.gpus, 'GPU')}"
        + (f", {each.aligned} with a NIC each under one switch" if each.fitting else "")
        for each in told
    ]


def _rails(devices: "Sequence[DeviceView]") -> str:
    """Give the rail of each column of NICs, where all nodes agree on it; empty otherwise."""
    rails: dict[int, int] = {}
    for device in devices:
        if device.kind is DeviceKind.RDMA:
            rails.setdefault(device.ordinal, device.rail)
            # One line stands for all nodes, or it would be wrong for some.
            if rails[device.ordinal] != device.rail:
                return ""
    known = [rails[ordinal] for ordinal in sorted(rails)]
    is_told = bool(known) and all(0 <= rail <= 9 for rail in known)  # noqa: PLR2004 - one digit
    return "".join(map(str, known)) if is_told else ""


def _cells(devices: "Sequence[DeviceView]", letters: dict[tuple[str, str], str]) -> Text:
    """Draw one node's devices, kind by kind."""
    drawn = Text()
    for kind in (DeviceKind.GPU, DeviceKind.RDMA):
        alike = [device for device in devices if device.kind is kind]
        for device in sorted(alike, key=lambda d: d.ordinal):
            drawn.append(*_cell(device, letters))
        # Eight cells are a whole node of today's machines; ten keeps the NICs below one another.
        drawn.append(" " * max(2, 10 - len(alike)))
    return drawn


def _jobs_holding(devices: "Sequence[DeviceView]") -> list[tuple[str, str]]:
    """Give name and id of the job that holds each device, where it is one we may see."""
    # Two namespaces may each have a job of one name; admins see both.
    return [(each.holder.job_name, each.holder.job_id) for each in devices if each.holder]


def _letters(devices: "Sequence[DeviceView]") -> dict[tuple[str, str], str]:
    jobs = sorted(set(_jobs_holding(devices)))
    # Sorted, so that a job keeps its letter while nothing starts or ends. After Z they begin again.
    return {job: LETTERS[index % len(LETTERS)] for index, job in enumerate(jobs)}


def _cell(device: "DeviceView", letters: dict[tuple[str, str], str]) -> tuple[str, str]:
    state = state_of(device)
    if state != "held":
        return SIGNS.get(state, (SICK, "red"))
    # A holder that is not told belongs to a tenant that this caller may not see.
    holder = device.holder
    letter = letters[holder.job_name, holder.job_id] if holder else HIDDEN
    return letter, _colour(letter)


def _colour(letter: str) -> str:
    return COLOURS[(ord(letter) - ord("A")) % len(COLOURS)]
