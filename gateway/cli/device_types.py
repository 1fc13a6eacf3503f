"""The command that lists known machine types, draws one, and checks a site's file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli import exits
from gateway.cli.options import Output
from gateway.cli.output import Column, Format, show_data, show_list
from gateway.cli.server import read_settings
from gateway.cli.session import client
from gateway.cli.terminal import clean

if TYPE_CHECKING:  # the models cost a tenth of a second, and help needs none
    from gateway.schemas.device_types import DeviceTypeDetail, DeviceTypeView

COLUMNS: "list[Column[DeviceTypeView]]" = [
    Column("NAME", lambda kind: kind.name),
    Column("GPUS", lambda kind: kind.gpus, is_number=True),
    Column("NICS", lambda kind: kind.nics, is_number=True),
    Column("SWITCHES", lambda kind: kind.switches or "?", is_number=True),
    Column("NUMA", lambda kind: kind.numa_nodes or "?", is_number=True),
    Column("PAIRS", lambda kind: kind.pairs, is_number=True),
    Column("MATCHES", lambda kind: ", ".join(kind.match.values())),
]


def device_types(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Draw this one.")] = None,
    check: Annotated[
        Path | None, typer.Option(help="Check a file of your own; needs no server.", metavar="FILE")
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """List known machine types, or draw how one is wired.

    PAIRS counts the GPUs that have a NIC under their switch; ? is what no source tells.

    Examples:
      gateway device types
      gateway device types dgx-h100
      gateway device types --check my-board.yaml
    """
    if check is not None:
        _show(_checked(check), output)
    elif name is not None:
        _show(client().devices.type(name), output)
    else:
        show_list(client().devices.types(), COLUMNS, output, name="name")


def _checked(path: Path) -> "DeviceTypeDetail":
    """Read a file beside all that this machine's settings know; raises InvalidInput."""
    settings = read_settings()
    from gateway.backends import machine_catalogue  # noqa: PLC0415 - server extra
    from gateway.service.device_types import detail_of  # noqa: PLC0415 - server extra

    machine_catalogue.use_site_machines(settings.machines_dir)
    found = machine_catalogue.check_file(path)
    exits.say(f"{path} is a machine type that can be used: {found.name}")
    return detail_of(found)


def _show(kind: "DeviceTypeDetail", output: Format) -> None:
    if output in (Format.JSON, Format.YAML):
        show_data(kind.model_dump(mode="json"), output)
        return
    for line in (kind.name,) if output is Format.NAME else kind.drawing:
        # Not by rich: a matrix is as wide as it is, and columns must stay below one another.
        print(clean(line))  # noqa: T201 - see above
