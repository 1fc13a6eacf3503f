"""Options for a queue's rules, in the short words of a command line, and the same words back.

What is read here becomes fields of a definition; whether it makes sense is judged by the server.
"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli.defining import LONGEST_NUMBER, read_quota
from gateway.errors import InvalidInput

if TYPE_CHECKING:  # the models cost a tenth of a second, and help needs none
    from gateway.schemas.definitions import QueueView
    from gateway.schemas.queue_rules import BudgetSpec, DatedChangeSpec

NONE = "none"
SECONDS = {"s": 1, "h": 3600, "d": 86_400}
CAPS = (
    *("queued_jobs", "running_jobs", "gpus_per_job"),
    *("user_queued_jobs", "user_running_jobs", "user_gpus"),
)
Order = Annotated[
    str | None,
    typer.Option(
        "--order",
        help="Who comes first: priority, fair_users, deadline, shortest, or an added one.",
        metavar="POLICY",
    ),
]
AgeingWords = Annotated[
    str | None,
    typer.Option(
        "--ageing",
        help="Points that an hour of waiting adds, and their cap; or none.",
        metavar="N/CAP",
    ),
]
BlockingWord = Annotated[
    str | None,
    typer.Option("--blocking", help="strict: nobody passes the head; best_effort.", metavar="WORD"),
]
Borrow = Annotated[
    str | None,
    typer.Option("--when-can-borrow", help="borrow or try_next_flavor.", metavar="WORD"),
]
CapRows = Annotated[
    list[str] | None,
    typer.Option("--cap", help=f"Again for more; names: {', '.join(CAPS)}.", metavar="NAME=N|none"),
]
BudgetWords = Annotated[
    str | None,
    typer.Option(
        "--budget",
        help="GPU hours in each window: 1000/7d[,from=TIME], or none.",
        metavar="HOURS/WINDOW",
    ),
]
Classes = Annotated[
    list[str] | None,
    typer.Option(
        "--priority-class",
        help="Class its jobs may have, or none; again for more.",
        metavar="CLASS",
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--change",
        help="TIME,FLAVOR/RESOURCE[=NOMINAL][,borrow=N][,lend=N], or none; again for more.",
        metavar="ROW",
    ),
]


def read_ageing(text: str) -> dict[str, Any]:
    """Read N/CAP; none is no ageing."""
    per_hour, slash, cap = ("0", "/", "0") if text == NONE else text.partition("/")
    if not (slash and _is_number(per_hour) and _is_number(cap)):
        raise _wrong("--ageing", text, "ageing is POINTS_AN_HOUR/CAP, or none", "--ageing 10/100")
    return {"per_hour": int(per_hour), "cap": int(cap)}


def read_caps(rows: list[str]) -> dict[str, int | None]:
    """Read NAME=N rows; a cap of none goes."""
    return dict(map(_cap, rows))


def _cap(row: str) -> tuple[str, int | None]:
    name, _, number = row.partition("=")
    # Options have dashes everywhere else on a command line.
    name = name.replace("-", "_")
    if name not in CAPS or not (number == NONE or _is_number(number)):
        example = "--cap running_jobs=8"
        raise _wrong(
            "--cap", row, f"a cap is NAME=N or NAME=none; names: {', '.join(CAPS)}", example
        )
    return name, None if number == NONE else int(number)


def read_budget(text: str) -> dict[str, Any] | None:
    """Read HOURS/WINDOW[,from=TIME]; none is no budget."""
    if text == NONE:
        return None
    amount, _, start = text.partition(",from=")
    hours, _, window = amount.partition("/")
    length, unit = window[:-1], window[-1:]
    if not (_is_number(length) and unit in SECONDS and _is_number(hours.replace(".", "", 1))):
        words = "a budget is GPU_HOURS/WINDOW[,from=TIME], the window as 7d, 12h or 90s; or none"
        raise _wrong("--budget", text, words, "--budget 1000/7d")
    starts = {"starts_at": start} if start else {}
    # Whole where it was written whole, so that exports look like what was typed.
    number = float(hours) if "." in hours else int(hours)
    return {"gpu_hours": number, "window_seconds": int(length) * SECONDS[unit], **starts}


def read_names(names: list[str]) -> list[str]:
    """Give the names; none alone is no name."""
    return [] if names == [NONE] else names


def read_changes(rows: list[str]) -> list[dict[str, Any]]:
    """Read TIME,FLAVOR/RESOURCE[=NOMINAL][,borrow=N][,lend=N] rows; none alone is no row."""
    return [] if rows == [NONE] else list(map(_change, rows))


def _change(row: str) -> dict[str, Any]:
    at, comma, rest = row.partition(",")
    pair, _, limits = rest.partition(",")
    is_complete = bool(at and comma and pair)
    if not is_complete:
        words = "a change is TIME,FLAVOR/RESOURCE[=NOMINAL][,borrow=N][,lend=N]"
        example = "--change 2030-01-31T18:00:00Z,default/gpu=8"
        raise _wrong("--change", row, words, example)
    if "=" in pair:
        return {"at": at, **read_quota(rest)}
    # A change may leave the nominal alone, which a quota row may not.
    quota = read_quota(f"{pair}=0" + (f",{limits}" if limits else ""))
    return {"at": at, **quota, "nominal": None}


def rule_lines(queue: "QueueView") -> list[tuple[str, object]]:
    """Give a queue's rules as label and value, in the words that options take."""
    caps = {name: getattr(queue.caps, name) for name in CAPS}
    return [
        ("order", queue.order),
        ("ageing", f"{queue.ageing.per_hour}/{queue.ageing.cap}" if queue.ageing.per_hour else ""),
        ("blocking", queue.blocking.value),
        ("when can borrow", queue.when_can_borrow.value),
        ("priority classes", ", ".join(queue.priority_classes)),
        ("caps", " ".join(f"{name}={n}" for name, n in caps.items() if n is not None)),
        ("budget", "" if queue.budget is None else budget_words(queue.budget)),
        *(("change", change_words(change)) for change in queue.changes),
    ]


def budget_words(budget: "BudgetSpec") -> str:
    """Give a budget in the form that --budget takes."""
    seconds = budget.window_seconds or 0
    # The largest unit that leaves nothing over: 604800 seconds are 7d.
    unit = next(unit for unit in reversed(SECONDS) if seconds % SECONDS[unit] == 0)
    start = "" if budget.starts_at is None else f",from={_time_words(budget.starts_at)}"
    return f"{budget.gpu_hours:g}/{seconds // SECONDS[unit]}{unit}{start}"


def change_words(change: "DatedChangeSpec") -> str:
    """Give a dated change in the form that --change takes."""
    nominal = "" if change.nominal is None else f"={change.nominal}"
    limits = {"borrow": change.borrowing_limit, "lend": change.lending_limit}
    said = "".join(f",{name}={n}" for name, n in limits.items() if n is not None)
    return f"{_time_words(change.at)},{change.flavor}/{change.resource}{nominal}{said}"


def _time_words(at: Any) -> str:
    return str(at.isoformat()).replace("+00:00", "Z")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER


def _wrong(option: str, value: str, detail: str, example: str) -> InvalidInput:
    return InvalidInput(detail, pointer=option, value=value, hint=f"for example: {example}")
