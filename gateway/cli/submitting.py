"""The command that submits jobs, and follows them when asked to."""

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli import exits
from gateway.cli.explaining import why_lines
from gateway.cli.jobs import COLUMNS, POLL_SECONDS, find, print_lines
from gateway.cli.options import Namespace, Output, detaching, given
from gateway.cli.output import Format, show_list, show_one
from gateway.cli.session import client
from gateway.cli.terminal import cores, gibibytes

if TYPE_CHECKING:  # the models cost a tenth of a second, and help needs none
    from gateway.schemas.views import ChargeView, PlanView
    from gateway.sdk import JobHandle


NotBefore = Annotated[
    str | None, typer.Option(help="Not considered before, as 2030-01-31T18:00:00Z.", metavar="TIME")
]
Deadline = Annotated[
    str | None, typer.Option(help="When it should be done; for the order only.", metavar="TIME")
]

Planned = Annotated[
    bool,
    typer.Option("--dry-run", help="Store nothing; say if and where it would start, or why not."),
]


def submit(
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Manifests; - reads standard input.", metavar="FILE..."),
    ] = None,
    from_job: Annotated[
        str | None, typer.Option("--from", help="Submit an earlier job again.", metavar="JOB")
    ] = None,
    queue: Annotated[
        str | None, typer.Option(help="Queue; else the namespace's default one.", metavar="QUEUE")
    ] = None,
    priority: Annotated[
        int | None, typer.Option(help="Order inside the queue; higher is sooner.", metavar="N")
    ] = None,
    priority_class: Annotated[
        str | None, typer.Option(help="Order across queues.", metavar="CLASS")
    ] = None,
    not_before: NotBefore = None,
    deadline: Deadline = None,
    expected_seconds: Annotated[
        int | None, typer.Option(min=1, help="How long it is expected to run.", metavar="N")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Another name for the job.", metavar="NAME")
    ] = None,
    namespace: Namespace = None,
    hold: Annotated[bool, typer.Option("--hold", help="Submit it held.")] = False,
    key: Annotated[
        str | None,
        typer.Option("--key", help="Idempotency key; one is made up otherwise.", metavar="KEY"),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Wait and print rank 0's lines.")] = False,
    dry_run: Planned = False,
    output: Output = Format.TABLE,
) -> None:
    """Submit PyTorchJobs, or jobs in the short form.

    Examples:
      gateway submit train.yaml --queue research --watch
      gateway submit train.yaml --dry-run
      kubectl get pytorchjob train -o yaml | gateway submit -
      gateway submit --from train --name train-again
    """
    # `hold or None`: the flag left out must not overrule a manifest that says hold itself.
    said = given(
        queue=queue,
        priority=priority,
        priority_class=priority_class,
        not_before_at=not_before,
        deadline_at=deadline,
        expected_seconds=expected_seconds,
        name=name,
        namespace=namespace,
        hold=hold or None,
    )
    documents = _gather(files or (), from_job, namespace)
    if dry_run:
        _plan(documents, said, output)
        return
    handles = _submit(documents, _keys(key, len(documents)), said)
    _show_submitted(handles, output)
    if wait or watch:
        _follow(handles, prints_lines=watch)


def _gather(files: Iterable[str], from_job: str | None, namespace: str | None) -> list[Any]:
    # All files are read before anything is sent: a mistake in the last one submits none.
    documents = list(chain.from_iterable(map(_documents, files)))
    if from_job is not None:
        documents.append(find(client(), from_job, namespace).detail().spec["manifest"])
    if not documents:
        raise typer.BadParameter("give FILE..., - for standard input, or --from JOB")
    return documents


def _documents(source: str) -> Any:
    from gateway.manifests import read_documents  # noqa: PLC0415 - only submit reads files

    return read_documents(source if source == "-" else Path(source))


def _keys(key: str | None, count: int) -> list[str | None]:
    """Give a key for each job; of several, each gets its number behind the key."""
    if key is None or count == 1:
        return [key] * count
    return [f"{key}:{number}" for number in range(count)]


def _plan(documents: Iterable[Any], said: dict[str, Any], output: Format) -> None:
    connection = client()
    for document in documents:
        answer = connection.plan(document, **said)
        lines = [
            ("name", answer.spec["name"]),
            ("queue", answer.queue),
            ("pods", answer.pods),
            ("gpus", answer.gpus),
            ("nics", answer.rdma),
            *plan_lines(answer),
            ("stored", "nothing (dry run)"),
        ]
        # What is not stored has no id to print alone.
        show_one(answer, lines, Format.TABLE if output is Format.NAME else output)


def plan_lines(answer: "PlanView") -> list[tuple[str, object]]:
    """Say whether a job would start and where, else why not."""
    lines: list[tuple[str, object]] = [("outcome", answer.summary)]
    for pod in answer.placements:
        devices = " ".join(device.name for device in pod.devices) or "no devices"
        words = f"{pod.pod_set} {pod.index}  {pod.node}  {devices}  (flavor {pod.flavor})"
        lines.append((f"rank {pod.rank}", words))
    charged = (f"{row.flavor}/{row.resource}={_amount(row)}" for row in answer.charges)
    lines += [("charges", " ".join(charged)), *why_lines(answer)]
    return [(label, words) for label, words in lines if words]


def _amount(row: "ChargeView") -> str:
    words = {"cpu": cores, "memory": gibibytes}
    return words.get(row.resource, str)(row.amount)


def _submit(
    documents: list[Any], keys: list[str | None], said: dict[str, Any]
) -> "list[JobHandle]":
    connection = client()
    return [
        connection.submit(document, idempotency_key=key, **said)
        for document, key in zip(documents, keys, strict=True)
    ]


def _show_submitted(handles: "list[JobHandle]", output: Format) -> None:
    if output is not Format.TABLE:
        show_list([handle.view for handle in handles], COLUMNS, output)
        return
    for handle in handles:
        exits.say(f"{handle.name}: submitted to queue {handle.view.queue}")
        print(handle.id)  # noqa: T201 - the id alone, for scripts


def _follow(handles: "list[JobHandle]", *, prints_lines: bool) -> None:
    """Wait for jobs; Ctrl-C detaches and leaves them alone."""
    for handle in handles:
        # Inside the loop, so that what was followed to its end is still reported.
        with detaching(f"detached; the job goes on: gateway logs -f {handle.id}"):
            if prints_lines:
                print_lines(handle.logs(follow=True))
            handle.wait(polling_interval=POLL_SECONDS)
        exits.say(f"{handle.name}: {handle.state.value}")
