"""Commands on jobs that were submitted: ls, show, events, logs, wait, and the verbs."""

import re
from collections.abc import Iterable
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli import exits
from gateway.cli.options import DryRun, Namespace, Output, detaching, given
from gateway.cli.output import Column, Format, console, show_list, show_one
from gateway.cli.session import client
from gateway.cli.terminal import age, clean, moment_words, span
from gateway.core.resources.words import counted
from gateway.errors import InvalidInput, NotFound

if TYPE_CHECKING:  # the models cost a tenth of a second, and help needs none
    from datetime import datetime

    from gateway.schemas.views import AssignmentView, EventView, JobDetail, JobView
    from gateway.sdk import Client, JobHandle

POLL_SECONDS = 0.5
MOST_SEARCHED = 500
"""Newest jobs that a part of an id is looked for in."""
# A whole id is asked for itself. A part is looked for among the newest jobs, since no index serves
# "ends with"; its alphabet keeps most names (which have other letters) from costing that search.
FULL_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ID_PART = re.compile(r"[0-9a-f-]{4,36}")

JobId = Annotated[str, typer.Argument(help="Job id, or its name.", metavar="JOB")]
JobIds = Annotated[list[str], typer.Argument(help="Job ids or names.", metavar="JOB...")]

COLUMNS: "list[Column[JobView]]" = [
    Column("ID", lambda job: job.id[-8:]),  # ids of one minute start alike
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


def find(connection: "Client", job: str, namespace: str | None = None) -> "JobHandle":
    """Find a job by its id, the end or start of its id, or its name; the newest of that name.

    Raises:
        NotFound: nothing matches.
        InvalidInput: a part of an id fits several jobs.
    """
    if FULL_ID.fullmatch(job):
        return connection.jobs.get(job)
    where = given(namespace=namespace)
    # Names come before parts of ids: "cafe" is both, and its owner means the name.
    named = next(iter(connection.jobs.list(name=job, **where)), None)
    return _starting_with(connection, job, where) if named is None else named


def _starting_with(connection: "Client", job: str, where: dict[str, Any]) -> "JobHandle":
    recent = islice(connection.jobs.list(**where), MOST_SEARCHED)
    known = list(recent) if ID_PART.fullmatch(job) else []
    starting = [item for item in known if item.id.endswith(job) or item.id.startswith(job)]
    if len(starting) > 1:
        raise InvalidInput(
            f"{job} fits {len(starting)} jobs", value=job, hint="give more of the id"
        )
    if not starting:
        inside = f" in namespace {where['namespace']}" if where else ""
        raise NotFound(f"no job {job!r}{inside}", value=job, hint="list your jobs: gateway ls")
    return starting[0]


def ls(
    state: Annotated[
        list[str] | None,
        typer.Option("--state", help="Only this state; again for more.", metavar="STATE"),
    ] = None,
    queue: Annotated[str | None, typer.Option(help="Only this queue.", metavar="QUEUE")] = None,
    user: Annotated[str | None, typer.Option(help="Only this user's.", metavar="USER")] = None,
    reason: Annotated[
        str | None, typer.Option(help="Only with this reason.", metavar="REASON")
    ] = None,
    namespace: Namespace = None,
    limit: Annotated[int, typer.Option(min=1, help="Most jobs to show.", metavar="N")] = 50,
    output: Output = Format.TABLE,
) -> None:
    """List jobs, newest first.

    Examples:
      gateway ls --state pending --state held --queue research
      gateway ls --reason OverQuota -o wide
      gateway ls --user anna -o name | xargs gateway cancel
    """
    wanted = given(
        state=",".join(state or ()) or None,
        queue=queue,
        user=user,
        reason=reason,
        namespace=namespace,
    )
    found = islice(client().jobs.list(**wanted), limit)
    show_list([handle.view for handle in found], COLUMNS, output)


def show(job: JobId, namespace: Namespace = None, output: Output = Format.TABLE) -> None:
    """Show one job: its state, nodes and devices.

    Examples:
      gateway show train
      gateway show train -n team-a -o yaml
    """
    handle = find(client(), job, namespace)
    view = handle.detail()
    show_one(view, _job_lines(view), output, name="id")
    if output is Format.TABLE:
        for place in handle.assignments():
            # Device names come from vendors' plugins; square brackets in one are no markup.
            console().print(f"  {_place_words(place)}", markup=False, soft_wrap=True)


def _job_lines(view: "JobDetail") -> list[tuple[str, object]]:
    return [
        ("id", view.id),
        ("name", f"{view.namespace}/{view.name}"),
        ("queue", f"{view.queue}, priority {view.priority}" + _class_words(view)),
        ("user", view.user),
        ("state", view.state.value),
        ("reason", view.reason or view.end_reason),
        ("message", view.message),
        # Under the word that raises the question; explain asks the engine, which costs more.
        ("why", f"gateway explain {view.id}" if view.reason else None),
        ("gang", ", ".join(map(counted, (view.pods, view.gpus, view.rdma), GANG))),
        ("not before", _instant(view.not_before_at)),
        ("deadline", _instant(view.deadline_at)),
        ("expected", _seconds(view.expected_seconds)),
        ("attempt", view.attempt or None),
        ("submitted", _ago(view.submitted_at)),
        ("started", _ago(view.started_at)),
        ("ended", _ago(view.ended_at)),
        ("exit code", view.exit_code),
        ("guarantee", view.guarantee),
    ]


GANG = ("pod", "GPU", "NIC")


def _class_words(view: "JobDetail") -> str:
    return f", class {view.priority_class}" if view.priority_class else ""


def _instant(moment: "datetime | None") -> str | None:
    # As options and manifests take it.
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment else None


def _seconds(count: int | None) -> str | None:
    return None if count is None else span(timedelta(seconds=count))


def _ago(moment: "datetime | None") -> str | None:
    return f"{age(moment)} ago" if moment else None


def _place_words(place: "AssignmentView") -> str:
    devices = " ".join(clean(device.name) for device in place.devices) or "no devices"
    return f"rank {place.rank}  {place.pod_set} {place.index}  {clean(place.node)}  {devices}"


TIME: "Column[EventView]" = Column("TIME", lambda event: moment_words(event.at))
WHOSE: "Column[EventView]" = Column("JOB", lambda event: (event.job_id or "")[-8:])
WHAT: "list[Column[EventView]]" = [
    Column("EVENT", lambda event: event.kind),
    Column("BY", lambda event: event.actor),
    Column("DETAIL", lambda event: event.detail),
]


def events(
    job: Annotated[
        str | None, typer.Argument(help="Job id or name; everything without.", metavar="JOB")
    ] = None,
    namespace: Namespace = None,
    output: Output = Format.TABLE,
) -> None:
    """Show what happened, oldest first.

    Examples:
      gateway events train
      gateway events -o json
    """
    connection = client()
    if job is None:
        show_list(list(connection.events()), [TIME, WHOSE, *WHAT], output)
    else:
        show_list(list(find(connection, job, namespace).events()), [TIME, *WHAT], output)


def logs(
    job: JobId,
    rank: Annotated[int, typer.Option(min=0, help="Rank; the Master is 0.", metavar="N")] = 0,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until it ends.")] = False,
    tail: Annotated[
        int | None, typer.Option(min=1, help="Only the last lines.", metavar="N")
    ] = None,
    attempt: Annotated[int, typer.Option(min=0, help="Attempt; 0 is the last.", metavar="N")] = 0,
    namespace: Namespace = None,
) -> None:
    """Print the lines of one rank.

    Examples:
      gateway logs train -f
      gateway logs train --rank 3 --tail 50 --attempt 1
    """
    handle = find(client(), job, namespace)
    with detaching("detached; the job goes on"):
        print_lines(handle.logs(rank, follow=follow, tail=tail, attempt=attempt or None))


def print_lines(lines: Iterable[str]) -> None:
    """Print a job's own lines, as they come."""
    for line in lines:
        # Flushed by line, because a pipe to grep or tee is block-buffered otherwise.
        print(clean(line), flush=True)  # noqa: T201 - the job's own output


def wait(
    job: JobId,
    status: Annotated[
        list[str] | None,
        typer.Option(
            "--for", help="State to wait for, or success; again for more.", metavar="STATE"
        ),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(help="For ever otherwise.", metavar="SECONDS")
    ] = None,
    namespace: Namespace = None,
) -> None:
    """Wait for a job to end, or to come to a state.

    The exit code is 0 when it succeeded, 1 when it failed, 124 when time ran out.

    Examples:
      gateway wait train && gateway submit next.yaml
      gateway wait train --for running --timeout 600
    """
    handle = find(client(), job, namespace)
    # Unhandled, Ctrl-C would leave it open whether the job was cancelled too.
    with detaching(f"detached; the job goes on: gateway wait {handle.id}"):
        handle.wait(status or ("succeeded",), timeout, POLL_SECONDS)
    exits.say(f"{handle.name}: {handle.state.value}")


def cancel(jobs: JobIds, namespace: Namespace = None, dry_run: DryRun = False) -> None:
    """Cancel jobs.

    Their devices come back once their pods are gone.

    Examples:
      gateway cancel train
      gateway ls --queue research -o name | xargs gateway cancel --dry-run
    """
    _each("cancel", jobs, namespace, dry_run=dry_run)


def hold(jobs: JobIds, namespace: Namespace = None, dry_run: DryRun = False) -> None:
    """Keep pending jobs from being considered.

    Example:
      gateway hold train
    """
    _each("hold", jobs, namespace, dry_run=dry_run)


def release(jobs: JobIds, namespace: Namespace = None, dry_run: DryRun = False) -> None:
    """Let held jobs be considered again.

    Example:
      gateway release train
    """
    _each("release", jobs, namespace, dry_run=dry_run)


def requeue(jobs: JobIds, namespace: Namespace = None, dry_run: DryRun = False) -> None:
    """Stop the present attempt and wait again.

    The job keeps its submit time, and so its place among equals.

    Example:
      gateway requeue train
    """
    _each("requeue", jobs, namespace, dry_run=dry_run)


def _each(verb: str, jobs: list[str], namespace: str | None, *, dry_run: bool) -> None:
    connection = client()
    # All are found before the first is touched: a typo in the last name changes nothing.
    for handle in [find(connection, job, namespace) for job in jobs]:
        exits.say(_would(verb, handle) if dry_run else _done(verb, handle))


def _would(verb: str, handle: "JobHandle") -> str:
    return f"would {verb} {handle.name} ({handle.id}), which is {handle.state.value}"


def _done(verb: str, handle: "JobHandle") -> str:
    getattr(handle, verb)()
    return f"{handle.name}: {handle.state.value}"


def reprioritise(
    job: JobId,
    priority: Annotated[
        int | None,
        typer.Argument(
            help="New priority; higher runs sooner inside the queue.", metavar="PRIORITY"
        ),
    ] = None,
    priority_class: Annotated[
        str | None,
        typer.Option("--class", help="New priority class; empty for none.", metavar="CLASS"),
    ] = None,
    namespace: Namespace = None,
) -> None:
    """Change a waiting job's priority or class.

    A priority counts inside the queue, a class across queues.

    Examples:
      gateway reprioritise train 10
      gateway reprioritise train --class urgent
    """
    if priority is None and priority_class is None:
        raise typer.BadParameter("give PRIORITY, --class, or both")
    found = find(client(), job, namespace)
    handle = found.reprioritise(priority, priority_class=priority_class)
    has_class = f", class {handle.view.priority_class}" if handle.view.priority_class else ""
    exits.say(f"{handle.name}: priority {handle.view.priority}{has_class}")
