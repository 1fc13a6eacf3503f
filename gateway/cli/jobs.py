"""Commands on jobs: submit, ls, show, explain, events, logs, wait, and the verbs."""

import re
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli import exits
from gateway.cli.output import Column, Format, console, show_data, show_list, show_one
from gateway.cli.session import client
from gateway.cli.terminal import age, clean
from gateway.errors import InvalidInput, NotFound

if TYPE_CHECKING:  # the models cost a tenth of a second, and help needs none
    from gateway.schemas.views import AssignmentView, EventView, ExplainView, JobDetail, JobView
    from gateway.sdk import Client, JobHandle

POLL_SECONDS = 0.5
MOST_SEARCHED = 500
"""Newest jobs that the start of an id is looked for in."""
FULL_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ID_START = re.compile(r"[0-9a-f-]{4,36}")

Output = Annotated[Format, typer.Option("--output", "-o", help="table, wide, json, yaml or name.")]
JobId = Annotated[str, typer.Argument(help="Job id, or its name.", metavar="JOB")]
JobIds = Annotated[list[str], typer.Argument(help="Job ids or names.", metavar="JOB...")]
Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Namespace; for names and lists.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check only; change nothing.")]

COLUMNS: "list[Column[JobView]]" = [
    Column("ID", lambda job: job.id[:8]),
    Column("NAME", lambda job: job.name),
    Column("NAMESPACE", lambda job: job.namespace, is_wide=True),
    Column("QUEUE", lambda job: job.queue),
    Column("USER", lambda job: job.user, is_wide=True),
    Column("PRIO", lambda job: job.priority, is_number=True),
    Column("STATE", lambda job: job.state.value),
    Column("REASON", lambda job: job.reason or job.end_reason or ""),
    Column("PODS", lambda job: job.pods, is_number=True),
    Column("GPUS", lambda job: job.gpus, is_number=True),
    Column("NICS", lambda job: job.rdma, is_number=True, is_wide=True),
    Column("TRY", lambda job: job.attempt, is_number=True, is_wide=True),
    Column("AGE", lambda job: age(job.submitted_at), is_number=True),
    Column("FULL ID", lambda job: job.id, is_wide=True),
]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for name, command in (
        ("submit", submit),
        ("ls", ls),
        ("show", show),
        ("explain", explain),
        ("events", events),
        ("logs", logs),
        ("wait", wait),
        ("cancel", cancel),
        ("hold", hold),
        ("release", release),
        ("requeue", requeue),
        ("reprioritise", reprioritise),
    ):
        app.command(name)(command)


def submit(
    files: Annotated[
        list[str], typer.Argument(help="Manifests; - reads standard input.", metavar="FILE...")
    ],
    queue: Annotated[str | None, typer.Option(help="Queue.")] = None,
    priority: Annotated[int | None, typer.Option(help="Order inside the queue.")] = None,
    name: Annotated[str | None, typer.Option(help="Another name for the job.")] = None,
    namespace: Namespace = None,
    hold: Annotated[bool, typer.Option("--hold", help="Submit it held.")] = False,
    key: Annotated[
        str | None, typer.Option("--key", help="Idempotency key; one is made up otherwise.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Wait and print rank 0's lines.")] = False,
    dry_run: DryRun = False,
    output: Output = Format.TABLE,
) -> None:
    """Submit PyTorchJobs, or jobs in the short form.

    Examples:
      gateway submit train.yaml --queue research --watch

      kubectl get pytorchjob train -o yaml | gateway submit -
    """
    given = _said(queue=queue, priority=priority, name=name, namespace=namespace, hold=hold or None)
    documents = [document for source in files for document in _documents(source)]
    connection = client()
    if dry_run:
        for document in documents:
            _show_plan(connection.plan(document, **given), output)
        return
    keys = _keys(key, len(documents))
    handles = [
        connection.submit(document, idempotency_key=one, **given)
        for document, one in zip(documents, keys, strict=True)
    ]
    if output is Format.TABLE:
        for handle in handles:
            exits.say(f"{handle.name}: submitted to queue {handle.view.queue}")
            print(handle.id)  # noqa: T201 - the id alone, for scripts
    else:
        show_list([handle.view for handle in handles], COLUMNS, output)
    if wait or watch:
        for handle in handles:
            _follow(handle, prints_lines=watch)


def _said(**options: Any) -> Any:
    """Give the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def _documents(source: str) -> Any:
    from gateway.manifests import read_documents  # noqa: PLC0415 - only submit reads files

    return read_documents(source if source == "-" else Path(source))


def _keys(key: str | None, count: int) -> list[str | None]:
    """Give a key for each job; of several, each gets its number behind the key."""
    if key is None or count == 1:
        return [key] * count
    return [f"{key}:{number}" for number in range(count)]


def _show_plan(answer: Any, output: Format) -> None:
    lines = [
        ("name", answer.spec["name"]),
        ("queue", answer.queue),
        ("pods", answer.pods),
        ("gpus", answer.gpus),
        ("nics", answer.rdma),
        ("stored", "nothing (dry run)"),
    ]
    show_one(answer, lines, output)


def _follow(handle: "JobHandle", *, prints_lines: bool) -> None:
    """Wait for a job; Ctrl-C detaches and leaves it alone."""
    try:
        if prints_lines:
            for line in handle.logs(follow=True):
                print(clean(line), flush=True)  # noqa: T201 - the job's own output
        handle.wait(polling_interval=POLL_SECONDS)
    except KeyboardInterrupt:
        exits.say(f"detached; the job goes on: gateway logs -f {handle.id}")
        raise typer.Exit(exits.INTERRUPTED) from None
    exits.say(f"{handle.name}: {handle.state.value}")


def find(connection: "Client", job: str, namespace: str | None = None) -> "JobHandle":
    """Find a job by its id, the start of its id, or its name; the newest of that name.

    Raises:
        NotFound: nothing matches.
        InvalidInput: the start of an id fits several jobs.
    """
    if FULL_ID.fullmatch(job):
        return connection.jobs.get(job)
    where = _said(namespace=namespace)
    named = next(iter(connection.jobs.list(name=job, **where)), None)
    if named is not None:
        return named
    recent = islice(connection.jobs.list(**where), MOST_SEARCHED)
    starting = [
        handle for handle in recent if ID_START.fullmatch(job) and handle.id.startswith(job)
    ]
    if len(starting) > 1:
        raise InvalidInput(
            f"{job} fits {len(starting)} jobs", value=job, hint="give more of the id"
        )
    if not starting:
        raise NotFound(f"no job {job!r}", value=job, hint="list your jobs: gateway ls")
    return starting[0]


def ls(
    state: Annotated[list[str] | None, typer.Option("--state", help="Only these states.")] = None,
    queue: Annotated[str | None, typer.Option(help="Only this queue.")] = None,
    user: Annotated[str | None, typer.Option(help="Only this user's.")] = None,
    reason: Annotated[str | None, typer.Option(help="Only with this reason.")] = None,
    namespace: Namespace = None,
    limit: Annotated[int, typer.Option(min=1, help="Most jobs to show.")] = 50,
    output: Output = Format.TABLE,
) -> None:
    """List jobs, newest first.

    Example: gateway ls --state pending --queue research -o wide
    """
    wanted = _said(
        state=",".join(state) if state else None,
        queue=queue,
        user=user,
        reason=reason,
        namespace=namespace,
    )
    found = islice(client().jobs.list(**wanted), limit)
    show_list([handle.view for handle in found], COLUMNS, output)


def show(job: JobId, namespace: Namespace = None, output: Output = Format.TABLE) -> None:
    """Show one job: its state, attempts, nodes and devices."""
    handle = find(client(), job, namespace)
    view = handle.detail()
    show_one(view, _job_lines(view), output)
    if output is Format.TABLE:
        for place in handle.assignments():
            console().print(f"  {_place_words(place)}", soft_wrap=True)


def _job_lines(view: "JobDetail") -> list[tuple[str, object]]:
    return [
        ("id", view.id),
        ("name", f"{view.namespace}/{view.name}"),
        ("queue", f"{view.queue}, priority {view.priority}"),
        ("user", view.user),
        ("state", view.state.value),
        ("reason", view.reason or view.end_reason),
        ("message", view.message),
        ("gang", f"{view.pods} pods, {view.gpus} GPUs, {view.rdma} NICs"),
        ("attempt", view.attempt or None),
        ("submitted", f"{age(view.submitted_at)} ago"),
        ("started", f"{age(view.started_at)} ago" if view.started_at else None),
        ("ended", f"{age(view.ended_at)} ago" if view.ended_at else None),
        ("exit code", view.exit_code),
        ("guarantee", view.guarantee),
    ]


def _place_words(place: "AssignmentView") -> str:
    devices = " ".join(clean(device.name) for device in place.devices) or "no devices"
    return f"rank {place.rank}  {place.pod_set} {place.index}  {clean(place.node)}  {devices}"


def explain(job: JobId, namespace: Namespace = None, output: Output = Format.TABLE) -> None:
    """Say why a job waits: every cause with counts, the quota path, and what would unblock it."""
    answer = find(client(), job, namespace).explain()
    if output is not Format.TABLE:
        show_data(answer.model_dump(mode="json"), output)
        return
    for line in explanation_lines(answer):
        console().print(clean(line), markup=False, soft_wrap=True)


def explanation_lines(answer: "ExplainView") -> list[str]:
    """Give the answer as lines of text."""
    lines = [answer.summary]
    if answer.reason:
        lines.append(f"reason     {answer.reason}")
    lines += [f"cause      {cause.detail}" for cause in answer.causes]
    lines += [
        f"quota      {step.node}: {step.resource} of {step.flavor}: {step.used} used of "
        f"{step.nominal} nominal, {step.available} available, {step.requested} asked"
        for step in answer.quota_path
    ]
    if answer.position is not None:
        lines.append(f"position   {answer.position} in its queue, {answer.jobs_ahead} ahead")
    lines += [f"unblock    {words}" for words in answer.unblock]
    if answer.estimate:
        lines.append(f"estimate   {answer.estimate}")
    if answer.decided_at:
        lines.append(f"as of      cycle {answer.serial}, {age(answer.decided_at)} ago")
    return lines


EVENT_COLUMNS: "list[Column[EventView]]" = [
    Column("TIME", lambda event: event.at.strftime("%Y-%m-%d %H:%M:%S")),
    Column("EVENT", lambda event: event.kind),
    Column("BY", lambda event: event.actor),
    Column("DETAIL", lambda event: event.detail),
]


def events(
    job: Annotated[str | None, typer.Argument(help="Job id or name; all jobs without.")] = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Show what happened, oldest first."""
    connection = client()
    found = connection.events() if job is None else find(connection, job, namespace).events()
    show_list(list(found), EVENT_COLUMNS, output)


def logs(
    job: JobId,
    rank: Annotated[int, typer.Option(min=0, help="Rank; the Master is 0.")] = 0,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until it ends.")] = False,
    tail: Annotated[int | None, typer.Option(min=1, help="Only the last lines.")] = None,
    attempt: Annotated[int, typer.Option(min=0, help="Attempt; 0 is the last.")] = 0,
    namespace: Namespace = None,
) -> None:
    """Print the lines of one rank."""
    handle = find(client(), job, namespace)
    try:
        for line in handle.logs(rank, follow=follow, tail=tail, attempt=attempt or None):
            print(clean(line), flush=True)  # noqa: T201 - the job's own output
    except KeyboardInterrupt:
        exits.say("detached; the job goes on")
        raise typer.Exit(exits.INTERRUPTED) from None


def wait(
    job: JobId,
    status: Annotated[
        list[str] | None, typer.Option("--for", help="States to wait for; the end otherwise.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds; for ever otherwise.")] = None,
    namespace: Namespace = None,
) -> None:
    """Wait for a job; exit code 0 when it succeeded, 1 when it failed, 124 when time ran out."""
    handle = find(client(), job, namespace)
    handle.wait(status or ("succeeded",), timeout, POLL_SECONDS)
    exits.say(f"{handle.name}: {handle.state.value}")


def cancel(jobs: JobIds, namespace: Namespace = None, dry_run: DryRun = False) -> None:
    """Cancel jobs; their devices come back once their pods are gone."""
    _each("cancel", jobs, namespace, dry_run=dry_run)


def hold(jobs: JobIds, namespace: Namespace = None, dry_run: DryRun = False) -> None:
    """Keep pending jobs from being considered."""
    _each("hold", jobs, namespace, dry_run=dry_run)


def release(jobs: JobIds, namespace: Namespace = None, dry_run: DryRun = False) -> None:
    """Let held jobs be considered again."""
    _each("release", jobs, namespace, dry_run=dry_run)


def requeue(jobs: JobIds, namespace: Namespace = None, dry_run: DryRun = False) -> None:
    """Stop the present attempt and wait again, with the old submit time."""
    _each("requeue", jobs, namespace, dry_run=dry_run)


def _each(verb: str, jobs: list[str], namespace: str | None, *, dry_run: bool) -> None:
    connection = client()
    for handle in [find(connection, job, namespace) for job in jobs]:
        if dry_run:
            exits.say(f"would {verb} {handle.name} ({handle.id}), which is {handle.state.value}")
            continue
        getattr(handle, verb)()
        exits.say(f"{handle.name}: {handle.state.value}")


def reprioritise(
    job: JobId,
    priority: Annotated[int, typer.Argument(help="New priority; higher runs sooner.")],
    namespace: Namespace = None,
) -> None:
    """Change a waiting job's priority inside its queue."""
    handle = find(client(), job, namespace).reprioritise(priority)
    exits.say(f"{handle.name}: priority {handle.view.priority}")
