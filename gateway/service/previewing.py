"""Says what would become of a job if it were submitted now; nothing is stored.

Asked of the warm state of this process, which is brought up to date first and stays as it is.
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from gateway.core.admission.asking import ASKED_JOB, Forecast, Scope, forecast
from gateway.core.admission.types import Admit, ClassHold
from gateway.core.admission.unblock import Lift, Unblock, words_of
from gateway.core.devices.masks import ordinals_of
from gateway.core.queues.definitions import Flavor
from gateway.core.resources.node_rules import Toleration
from gateway.core.resources.words import counted, listed
from gateway.core.vocabulary import DeviceKind, LiftKind, Reason
from gateway.core.waiting.table import NewJob
from gateway.db import attempts as attempt_rows
from gateway.db.inventory_reading import devices_on, names_of
from gateway.errors import Conflict
from gateway.schemas.base import micros_of
from gateway.schemas.job_spec import JobSpec
from gateway.schemas.views import (
    CauseView,
    ChargeView,
    PlannedPod,
    QuotaStepView,
    TolerationView,
)
from gateway.service.context import Caller, Gateway
from gateway.service.gangs import request_of
from gateway.service.mirroring import refresh
from gateway.service.presenting import device_ref
from gateway.service.standing import lift_views, possible

SECONDS = 1.0
"""Time that the pass for an answer may take; the budget of candidates follows from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What the definitions say of a job's place in the order."""

    rank: int
    """Value of its priority class."""
    highest: int
    """Highest priority that its queue takes."""


def preview(gateway: Gateway, caller: Caller, spec: JobSpec, order: Place) -> dict[str, Any]:
    """Give the fields of a plan's view that say whether the job would start, and where.

    Args:
        gateway: its warm state is asked.
        caller: who would submit.
        spec: with its queue chosen and its priority clamped.
        order: what decides beside it.

    Raises:
        Conflict: the queue went away meanwhile.
    """
    found = _ask(gateway, _job(spec, caller.name, order.rank, gateway.clock.now_us()), spec)
    place = {
        "position": found.position,
        "jobs_ahead": found.position - 1,
        "gpus_ahead": found.gpus_ahead,
    }
    if spec.hold:
        return {**_told(spec, Reason.HELD, "it is submitted held"), **_helping(_held(found))}
    if found.admit is not None:
        return {**_placed(gateway, spec, found.admit, dict(found.flavors)), **place}
    if found.hold is not None:
        told = {**hold_fields(found.hold), "summary": _summary(spec, found.hold)}
    else:
        told = _barred(spec, found)
    return {**told, **place, **_helping(possible(found.sets, order.highest))}


def _job(spec: JobSpec, user: str, rank: int, now_us: int) -> NewJob:
    return NewJob(
        job_id=ASKED_JOB,
        version=1,
        queue=spec.queue,
        class_id=0,
        user=user,
        priority=spec.priority,
        rank=rank,
        submitted_us=now_us,
        # An instant before the epoch is at once, as when it is submitted.
        eligible_us=max(0, _micros(spec.not_before_at)),
        deadline_us=_micros(spec.deadline_at),
        expected_seconds=spec.expected_seconds or 0,
    )


def _micros(text: str | None) -> int:
    return 0 if text is None else micros_of(datetime.fromisoformat(text))


def _ask(gateway: Gateway, job: NewJob, spec: JobSpec) -> Forecast:
    settings, pace = gateway.settings, gateway.mirror.pace
    with gateway.database.read() as connection:
        # Outside of the mirror's lock, as a cycle does: nobody waits for the database under it.
        backlog = attempt_rows.count_unlaunched(connection)
    with gateway.mirror.lock:
        refresh(gateway)
        state = gateway.mirror.mirror.state
        if job.queue not in state.lines.lines:
            raise Conflict(f"queue {job.queue} was deleted meanwhile", hint="choose another queue")
        scope = Scope(
            now_us=job.submitted_us,
            budget=pace.budget(SECONDS, settings.cycle_budget),
            most_admits=max(0, settings.max_unlaunched - backlog),
        )
        return forecast(state, job, request_of(spec), scope)


def hold_fields(hold: ClassHold) -> dict[str, Any]:
    """Give the fields of a view that say why a class of jobs waits."""
    return {
        "reason": hold.reason,
        "causes": tuple(CauseView(**asdict(cause)) for cause in hold.causes),
        "quota_path": tuple(QuotaStepView(**asdict(step)) for step in hold.quota_path),
        "limiting": hold.limiting,
    }


def _summary(spec: JobSpec, hold: ClassHold) -> str:
    first = hold.causes[0].detail if hold.causes else hold.reason.value
    return f"{spec.name} would wait in queue {spec.queue}: {first}"


def _barred(spec: JobSpec, found: Forecast) -> dict[str, Any]:
    bar = found.bar
    if bar is None:
        return {}
    if bar.reason is Reason.NOT_BEFORE:
        return _told(spec, bar.reason, f"it is not to start before {spec.not_before_at}")
    return _told(spec, bar.reason, bar.detail)


def _held(found: Forecast) -> tuple[Unblock, ...]:
    """Give what would let a job start that is submitted held."""
    release = Unblock("it to be released", (Lift(kind=LiftKind.RELEASE),))
    return (release,) if found.admit else tuple(release.also(each) for each in found.sets)


def _helping(sets: tuple[Unblock, ...]) -> dict[str, Any]:
    return {"unblock": words_of(sets), "lifts": lift_views(sets)}


def _told(spec: JobSpec, reason: Reason, words: str) -> dict[str, Any]:
    return {
        "reason": reason,
        "summary": f"{spec.name} would wait in queue {spec.queue}: {words}",
        "causes": (CauseView(reason=reason, detail=words),),
    }


def _placed(
    gateway: Gateway, spec: JobSpec, admit: Admit, flavors: dict[str, Flavor]
) -> dict[str, Any]:
    node_ids = {place.node_id for place in admit.placements}
    with gateway.database.read() as connection:
        names, devices = names_of(connection, node_ids), devices_on(connection, node_ids)
    pods = tuple(
        PlannedPod(
            pod_set=place.pod_set,
            index=place.index,
            rank=rank,
            node=names.get(place.node_id, ""),
            flavor=flavors[place.pod_set].name,
            devices=tuple(
                device_ref(devices[place.node_id, kind, ordinal])
                for kind, mask in _masks(place.gpu_mask, place.nic_mask)
                for ordinal in ordinals_of(mask)
                # The very moment between both readings may have taken a device away.
                if (place.node_id, kind, ordinal) in devices
            ),
            tolerations=tuple(map(_toleration, flavors[place.pod_set].tolerations)),
        )
        for rank, place in enumerate(admit.placements)
    )
    nodes = listed(sorted({pod.node for pod in pods}))
    return {
        "starts_now": True,
        "summary": f"{spec.name} would start now: {counted(len(pods), 'pod')} on {nodes}",
        "placements": pods,
        "charges": tuple(ChargeView(**asdict(charge)) for charge in admit.charges),
    }


def _toleration(toleration: Toleration) -> TolerationView:
    return TolerationView(**asdict(toleration))


def _masks(gpus: int, nics: int) -> tuple[tuple[str, int], ...]:
    return (DeviceKind.GPU, gpus), (DeviceKind.RDMA, nics)
