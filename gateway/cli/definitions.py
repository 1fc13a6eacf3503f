"""Commands on queues, cohorts and flavors, and on all of them at once: apply, export, share."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli import exits
from gateway.cli.jobs import DryRun, Output
from gateway.cli.output import Column, Format, console, show_data, show_list, show_one
from gateway.cli.session import client
from gateway.errors import InvalidInput, MalformedBody, NotFound

if TYPE_CHECKING:  # the models cost a tenth of a second, and help needs none
    from gateway.schemas.definitions import CohortView, FlavorView, QueueView

Name = Annotated[str, typer.Argument(metavar="NAME")]
Weight = Annotated[int | None, typer.Option(min=0, help="Weight of its share.")]
Quotas = Annotated[
    list[str] | None,
    typer.Option(
        "--quota",
        help="FLAVOR/RESOURCE=NOMINAL[,borrow=N][,lend=N]; again for more.",
        metavar="ROW",
    ),
]
MOST_BAR = 30

QUEUE_COLUMNS: "list[Column[QueueView]]" = [
    Column("NAME", lambda queue: queue.name),
    Column("COHORT", lambda queue: queue.cohort or ""),
    Column("STATE", lambda queue: queue.state.value),
    Column("WEIGHT", lambda queue: queue.weight, is_number=True),
    Column("PENDING", lambda queue: queue.pending, is_number=True),
    Column("HELD", lambda queue: queue.held, is_number=True),
    Column("ACTIVE", lambda queue: queue.active, is_number=True),
    Column("QUOTA", lambda queue: quota_words(queue.quotas)),
    Column("NAMESPACES", lambda queue: ",".join(queue.namespaces), is_wide=True),
]
COHORT_COLUMNS: "list[Column[CohortView]]" = [
    Column("NAME", lambda cohort: cohort.name),
    Column("PARENT", lambda cohort: cohort.parent or ""),
    Column("WEIGHT", lambda cohort: cohort.weight, is_number=True),
    Column("QUOTA", lambda cohort: quota_words(cohort.quotas)),
]
FLAVOR_COLUMNS: "list[Column[FlavorView]]" = [
    Column("NAME", lambda flavor: flavor.name),
    Column("NODE LABELS", lambda flavor: _labels(flavor.node_labels) or "every node"),
    Column("TOLERATIONS", lambda flavor: len(flavor.tolerations), is_number=True),
]


def quota_words(quotas: Any) -> str:
    """Give quota rows in the form that --quota takes."""
    return " ".join(
        f"{quota.flavor}/{quota.resource}={quota.nominal}"
        + (f",borrow={quota.borrowing_limit}" if quota.borrowing_limit is not None else "")
        + (f",lend={quota.lending_limit}" if quota.lending_limit is not None else "")
        for quota in quotas
    )


def _labels(labels: dict[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def read_quota(text: str) -> dict[str, Any]:
    """Read FLAVOR/RESOURCE=NOMINAL[,borrow=N][,lend=N]; the resource may contain slashes."""
    row, *limits = text.split(",")
    pair, equals, nominal = row.partition("=")
    flavor, slash, resource = pair.partition("/")
    names = {"borrow": "borrowing_limit", "lend": "lending_limit"}
    quota: dict[str, Any] = {"flavor": flavor, "resource": resource, "nominal": _amount(nominal)}
    for limit in limits:
        key, _, value = limit.partition("=")
        if key not in names or not value:
            raise _bad_quota(text)
        quota[names[key]] = _amount(value)
    if not (equals and slash and flavor and resource and nominal):
        raise _bad_quota(text)
    return quota


def _amount(text: str) -> int | str:
    return int(text) if text.isdigit() else text


def _bad_quota(text: str) -> InvalidInput:
    return InvalidInput(
        "a quota row is FLAVOR/RESOURCE=NOMINAL[,borrow=N][,lend=N]",
        pointer="--quota",
        value=text,
        hint="for example: --quota default/gpu=16,borrow=8",
    )


def queue_app() -> typer.Typer:
    """Give the commands below `gateway queue`."""
    app = typer.Typer(no_args_is_help=True, help="Queues: ls, show, create, set, delete, pause.")

    @app.command("ls")
    def ls(output: Output = Format.TABLE) -> None:
        """List queues."""
        show_list(client().queues.list(), QUEUE_COLUMNS, output, name="name")

    @app.command("show")
    def show(name: Name, output: Output = Format.TABLE) -> None:
        """Show one queue with its use."""
        queue = client().queues.get(name)
        show_one(queue, _queue_lines(queue), output)

    @app.command("create")
    def create(
        name: Name,
        cohort: Annotated[str | None, typer.Option(help="Cohort it belongs to.")] = None,
        weight: Weight = None,
        quota: Quotas = None,
        namespace: Annotated[list[str] | None, typer.Option(help="Who may submit.")] = None,
        default_for: Annotated[list[str] | None, typer.Option(help="Default queue of.")] = None,
    ) -> None:
        """Create a queue.

        Example: gateway queue create research --cohort lab --quota default/gpu=16,borrow=8
        """
        spec = _given(cohort, weight, quota, namespace, default_for)
        client().queues.create(_checked("QueueSpec", {"name": name, **spec}))
        exits.say(f"queue {name} created")

    @app.command("set")
    def change(
        name: Name,
        cohort: Annotated[str | None, typer.Option(help="Cohort it belongs to.")] = None,
        weight: Weight = None,
        quota: Quotas = None,
        namespace: Annotated[list[str] | None, typer.Option(help="Who may submit.")] = None,
        default_for: Annotated[list[str] | None, typer.Option(help="Default queue of.")] = None,
    ) -> None:
        """Change what is named; quota rows given replace all rows."""
        _update(
            client().queues,
            "QueueSpec",
            name,
            _given(cohort, weight, quota, namespace, default_for),
        )
        exits.say(f"queue {name} changed")

    @app.command("pause")
    def pause(name: Name) -> None:
        """Stop admitting; what runs goes on."""
        exits.say(f"queue {name}: {client().queues.pause(name).state.value}")

    @app.command("resume")
    def resume(name: Name) -> None:
        """Admit again."""
        exits.say(f"queue {name}: {client().queues.resume(name).state.value}")

    @app.command("delete")
    def delete(name: Name) -> None:
        """Delete a queue without live jobs."""
        client().queues.delete(name)
        exits.say(f"queue {name} deleted")

    return app


def _given(
    cohort: str | None,
    weight: int | None,
    quota: list[str] | None,
    namespaces: list[str] | None,
    default_for: list[str] | None,
) -> dict[str, Any]:
    values = {
        "cohort": cohort,
        "weight": weight,
        "quotas": [read_quota(row) for row in quota] if quota else None,
        "namespaces": namespaces or None,
        "default_for": default_for or None,
    }
    return {field: value for field, value in values.items() if value is not None}


VIEW_ONLY = frozenset({"version", "pending", "held", "active", "usage"})
"""Fields that an answer has and a definition has not."""


def _checked(kind: str, values: dict[str, Any]) -> Any:
    """Give the definition of these values, or say what is wrong with them."""
    from pydantic import ValidationError  # noqa: PLC0415 - costs a tenth of a second

    from gateway.schemas import definitions  # noqa: PLC0415 - the same

    try:
        return getattr(definitions, kind).model_validate_json(json.dumps(values))
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidInput(
            first["msg"],
            pointer="/" + "/".join(str(part) for part in first["loc"]),
            value=first["input"] if isinstance(first["input"], str | int) else None,
            hint="gateway export shows how definitions look",
        ) from None


def _update(resource: Any, kind: str, name: str, changes: dict[str, Any]) -> None:
    """Read, change what is named, and write back unless somebody was faster."""
    current = resource.get(name)
    spec = current.model_dump(mode="json", exclude=set(VIEW_ONLY))
    resource.update(_checked(kind, {**spec, **changes}), if_version=current.version)


def _queue_lines(queue: "QueueView") -> list[tuple[str, object]]:
    lines: list[tuple[str, object]] = [
        ("name", queue.name),
        ("cohort", queue.cohort),
        ("state", queue.state.value),
        ("weight", queue.weight),
        ("jobs", f"{queue.pending} pending, {queue.held} held, {queue.active} active"),
        ("namespaces", ", ".join(queue.namespaces)),
    ]
    for row in queue.usage:
        words = f"{row.used} used of {row.nominal}, {row.borrowed} borrowed, {row.available} left"
        lines.append((f"{row.flavor}/{row.resource}", words))
    return lines


def cohort_app() -> typer.Typer:
    """Give the commands below `gateway cohort`."""
    app = typer.Typer(no_args_is_help=True, help="Cohorts: ls, show, create, set, delete.")

    @app.command("ls")
    def ls(output: Output = Format.TABLE) -> None:
        """List cohorts."""
        show_list(client().cohorts.list(), COHORT_COLUMNS, output, name="name")

    @app.command("show")
    def show(name: Name, output: Output = Format.TABLE) -> None:
        """Show one cohort."""
        cohort = client().cohorts.get(name)
        lines = [(column.title.lower(), column.value(cohort)) for column in COHORT_COLUMNS]
        show_one(cohort, lines, output)

    @app.command("create")
    def create(
        name: Name,
        parent: Annotated[str | None, typer.Option(help="Cohort above.")] = None,
        weight: Weight = None,
        quota: Quotas = None,
    ) -> None:
        """Create a cohort, whose children lend unused quota to each other."""
        spec = {"name": name, **_cohort_given(parent, weight, quota)}
        client().cohorts.create(_checked("CohortSpec", spec))
        exits.say(f"cohort {name} created")

    @app.command("set")
    def change(
        name: Name,
        parent: Annotated[str | None, typer.Option(help="Cohort above.")] = None,
        weight: Weight = None,
        quota: Quotas = None,
    ) -> None:
        """Change what is named."""
        _update(client().cohorts, "CohortSpec", name, _cohort_given(parent, weight, quota))
        exits.say(f"cohort {name} changed")

    @app.command("delete")
    def delete(name: Name) -> None:
        """Delete a cohort without children."""
        client().cohorts.delete(name)
        exits.say(f"cohort {name} deleted")

    return app


def _cohort_given(
    parent: str | None, weight: int | None, quota: list[str] | None
) -> dict[str, Any]:
    values = {
        "parent": parent,
        "weight": weight,
        "quotas": [read_quota(row) for row in quota] if quota else None,
    }
    return {field: value for field, value in values.items() if value is not None}


def flavor_app() -> typer.Typer:
    """Give the commands below `gateway flavor`."""
    app = typer.Typer(no_args_is_help=True, help="Flavors: ls, show, create, set, delete.")
    labels = Annotated[
        list[str] | None, typer.Option("--label", help="KEY=VALUE of its nodes; again for more.")
    ]

    @app.command("ls")
    def ls(output: Output = Format.TABLE) -> None:
        """List flavors."""
        show_list(client().flavors.list(), FLAVOR_COLUMNS, output, name="name")

    @app.command("show")
    def show(name: Name, output: Output = Format.TABLE) -> None:
        """Show one flavor."""
        flavor = client().flavors.get(name)
        lines = [(column.title.lower(), column.value(flavor)) for column in FLAVOR_COLUMNS]
        show_one(flavor, lines, output)

    @app.command("create")
    def create(name: Name, label: labels = None) -> None:
        """Create a flavor: a kind of node by labels."""
        spec = {"name": name, "node_labels": _pairs(label or [])}
        client().flavors.create(_checked("FlavorSpec", spec))
        exits.say(f"flavor {name} created")

    @app.command("set")
    def change(name: Name, label: labels = None) -> None:
        """Replace a flavor's labels."""
        _update(client().flavors, "FlavorSpec", name, {"node_labels": _pairs(label or [])})
        exits.say(f"flavor {name} changed")

    @app.command("delete")
    def delete(name: Name) -> None:
        """Delete a flavor that no quota names."""
        client().flavors.delete(name)
        exits.say(f"flavor {name} deleted")

    return app


def _pairs(items: list[str]) -> dict[str, str]:
    pairs = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not key or not equals:
            raise InvalidInput(
                "a label is KEY=VALUE", pointer="--label", value=item, hint="--label gpu=h100"
            )
        pairs[key] = value
    return pairs


def apply(
    file: Annotated[Path, typer.Option("--file", "-f", help="File or folder; - reads input.")],
    dry_run: DryRun = False,
) -> None:
    """Create and change queues, cohorts and flavors to be as a file says; all or nothing.

    Example: gateway export > config.yaml; edit it; gateway apply -f config.yaml --dry-run
    """
    for change in client().definitions.apply(
        _checked("DefinitionSet", _read(file)), dry_run=dry_run
    ):
        exits.say(("would " if dry_run else "") + change)


def _read(file: Path) -> dict[str, Any]:
    texts = (
        [typer.get_text_stream("stdin").read()]
        if str(file) == "-"
        else [path.read_text() for path in _files(file)]
    )
    import yaml  # noqa: PLC0415 - only these commands read files

    merged: dict[str, Any] = {}
    for text in texts:
        try:
            documents = [document for document in yaml.safe_load_all(text) if document]
        except yaml.YAMLError as error:
            raise MalformedBody(
                f"{file} is no YAML: {error}", hint="gateway export shows the form"
            ) from error
        for document in documents:
            _merge(merged, document)
    return merged


def _files(file: Path) -> list[Path]:
    if not file.exists():
        raise NotFound(f"{file} does not exist", hint="give a file, a folder or -")
    return sorted(file.glob("*.y*ml")) if file.is_dir() else [file]


def _merge(merged: dict[str, Any], document: Any) -> None:
    if not isinstance(document, dict):
        raise MalformedBody("a configuration is a mapping", hint="gateway export shows the form")
    for key, value in document.items():
        if isinstance(value, list):
            merged.setdefault(key, []).extend(value)
        else:
            merged[key] = value


def export(output: Output = Format.YAML) -> None:
    """Print queues, cohorts and flavors in the form that `apply` takes."""
    found = client().definitions.export().model_dump(mode="json", exclude_none=True)
    show_data(found, Format.JSON if output is Format.JSON else Format.YAML)


def share(output: Output = Format.TABLE) -> None:
    """Show who uses how much of what they own, queue by queue."""
    queues = client().queues.list()
    if output is not Format.TABLE:
        show_list(queues, QUEUE_COLUMNS, output, name="name")
        return
    rows = [(queue, row) for queue in queues for row in queue.usage]
    for queue, row in rows:
        filled = min(MOST_BAR, MOST_BAR * row.used // max(1, row.nominal))
        bar = "#" * filled + "." * (MOST_BAR - filled)
        console().print(
            f"{queue.name:<16} {row.flavor}/{row.resource:<10} [{bar}] {row.used}/{row.nominal}",
            markup=False,
        )
    if not rows:
        exits.say("no queue has quota; everything is shared without limits")
