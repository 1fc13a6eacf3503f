"""The launch back end on Kubernetes with the training operator (PyTorchJob v1).

Every call keeps to one deadline over all its requests, may be repeated at will, and keeps nothing
in memory: what has to be remembered stands on the objects themselves.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, ClassVar

from gateway.backends.base import (
    ForeignObject,
    Launch,
    NodeSeen,
    ObjectOutcome,
    ObjectRef,
    Observation,
)
from gateway.backends.kubeflow.answers import (
    AccessDenied,
    ClusterThrottled,
    ObjectAbsent,
    ObjectChanged,
    ObjectExists,
)
from gateway.backends.kubeflow.calls import JOBS_ROOT, Calls
from gateway.backends.kubeflow.client import KubernetesTransport, Transport
from gateway.backends.kubeflow.deadline import Deadline
from gateway.backends.kubeflow.gates import GateView, Opening, has_open_pod, look, opening_patch
from gateway.backends.kubeflow.inventory import nodes_seen
from gateway.backends.kubeflow.json_paths import Json, text_at
from gateway.backends.kubeflow.logs import LogReader
from gateway.backends.kubeflow.names import OPENED_ANNOTATION, RECREATED_ANNOTATION
from gateway.backends.kubeflow.observation import (
    is_live,
    is_suspended,
    may_start,
    observation_of,
    outcome_of,
    recreated_uids,
    result_at,
    was_opened,
)
from gateway.backends.kubeflow.rendering import disagreement, is_own, render
from gateway.backends.kubeflow.replicas import is_alive
from gateway.backends.kubeflow.settings import KubeflowSettings
from gateway.core.vocabulary import BackendName, Guarantee
from gateway.errors import ClusterRejected, ClusterUnreachable

MOST_TRIES = 8
"""Of a patch that keeps meeting a newer version: the operator writes the status meanwhile."""
CLEAN_UP_SECONDS = 60.0
"""How long the operator may take to remove the pods that a finished object leaves behind."""
RESERVE_SECONDS = 1.0
"""Left of a call for looking whether a create whose answer was lost took effect."""
MOST_RECORDED = 100
"""Recorded UIDs of re-created pods; an attempt fails long before."""


class KubeflowBackend:
    """PyTorchJobs in a cluster; raises StartupRefused when there is no access to one."""

    name: ClassVar[BackendName] = BackendName.KUBEFLOW
    # As many as the client's pool keeps connections for, with some left for logs and probes.
    calls_at_once: ClassVar[int] = 8
    guarantee: Guarantee = Guarantee.ADVISORY

    def __init__(
        self,
        settings: KubeflowSettings,
        transport: Transport | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Read the credentials; no request is sent."""
        self._now = now
        self._settings = settings
        self._calls = Calls(
            transport or KubernetesTransport(settings.kubeconfig), settings.call_seconds
        )
        self._logs = LogReader(self._calls, settings)

    def inventory(self) -> Sequence[NodeSeen]:
        """Give every node with its devices and what pods of others take of it."""
        return nodes_seen(self._calls.nodes(), self._calls.bound_pods())

    def create(self, launch: Launch) -> ObjectRef:
        """Create the object suspended, or adopt this attempt's own of an earlier call."""
        deadline = self._deadline()
        body = render(launch, self._settings.priority_class)
        try:
            # A create may act although its answer is lost. The reserve pays for the look that
            # tells, so that there is neither a second object nor a forgotten one.
            job = self._calls.create_job(body, deadline.earlier(RESERVE_SECONDS))
        except (ObjectExists, ClusterUnreachable) as error:
            return self._adopt(launch, deadline, error)
        self._check_created(job, launch, deadline)
        return _ref(job)

    def find(self, launch: Launch) -> ObjectRef | None:
        """Look for this attempt's object by its name.

        Raises ClusterRejected when the gateway may not look: it may not launch there either.
        """
        try:
            job = self._get(launch, self._deadline())
        except AccessDenied as error:
            raise ClusterRejected(error.detail, hint=error.hint) from error
        return None if job is None else _own_ref(job, launch)

    def hold(self, launch: Launch, ref: ObjectRef) -> None:
        """Hold nothing: the guarantee is advisory."""

    def unsuspend(self, launch: Launch, ref: ObjectRef) -> None:
        """Let the operator create the pods; nothing for what ended, was stopped or is not ours."""
        deadline = self._deadline()

        def settle(job: Json) -> bool:
            # A leader that died may repeat this after the gang's end or stop; nothing starts twice.
            if not may_start(job):
                return True
            _refuse_disagreement(job, launch)
            return self._try_unsuspend(job, deadline)

        trouble = f"{ref.name} changes too fast to be unsuspended"
        _insist(partial(self._live_job, launch, ref, deadline), settle, trouble)

    def open_gates(self, launch: Launch, ref: ObjectRef) -> bool:
        """Pin and open the whole gang, later each re-created replica alone."""
        deadline = self._deadline()
        job = self._live_job(launch, ref, deadline)
        if job is None or is_suspended(job):
            return False
        pods = self._calls.pods_of(ref, deadline)
        view = look(launch, pods)
        # The mark is written after the gates. A crash in between leaves a gang that is open but
        # not marked, and a pod of it may have ended since, so that it never is complete again:
        # one pod that carries our plan and no gate proves that the gang was complete once.
        if was_opened(job):
            self._record_recreated(launch, job, view, deadline)
            return self._open(launch, view, deadline)
        if not (view.is_complete or has_open_pod(launch, pods)):
            return False
        is_open = self._open(launch, view, deadline)
        if is_open:
            self._annotate(launch, ref, {OPENED_ANNOTATION: "true"}, deadline)
        return is_open

    def observe(self, launch: Launch, ref: ObjectRef) -> Observation:
        """Look at the object and at its pods, also at those that outlive it."""
        deadline = self._deadline()
        # The object first: pods listed later cannot have been created by one that was gone.
        job = self._get(launch, deadline)
        return observation_of(launch, ref, job, self._calls.pods_of(ref, deadline))

    def stop(self, launch: Launch, ref: ObjectRef) -> None:
        """Delete what has no result yet; a finished object stays with its logs until `delete`.

        Deleting works while the operator and its webhook are down, which suspending does not.
        """
        deadline = self._deadline()
        job = self._live_job(launch, ref, deadline)
        if job is not None and self._must_be_deleted(job, ref, deadline):
            self._calls.delete_job(ref, deadline)

    def _must_be_deleted(self, job: Json, ref: ObjectRef, deadline: Deadline) -> bool:
        """Whether nothing less ends it: it has no result, or the operator does not clean up."""
        ended_at = result_at(job)
        if ended_at is None:
            # A result without a readable instant is left alone: deleting would take its logs.
            return outcome_of(job) is ObjectOutcome.UNDECIDED
        if (self._now() - ended_at).total_seconds() < CLEAN_UP_SECONDS:
            return False
        return any(map(is_alive, self._calls.pods_of(ref, deadline)))

    def delete(self, ref: ObjectRef) -> None:
        """Remove the object with this UID and its pods."""
        self._calls.delete_job(ref, self._deadline())

    def logs(self, launch: Launch, rank: int, *, follow: bool, tail: int | None) -> Iterator[str]:
        """Give lines of the rank's training container; raises NotFound without a pod."""
        return self._logs.read(launch, rank, follow=follow, tail=tail)

    def is_reachable(self) -> bool:
        """Whether the cluster answers and serves PyTorchJobs."""
        try:
            self._calls.read(JOBS_ROOT, "PyTorchJob", self._deadline())
        except (ClusterUnreachable, ClusterRejected, ObjectAbsent):
            return False
        return True

    def _deadline(self) -> Deadline:
        return Deadline(self._settings.call_seconds)

    def _get(self, launch: Launch, deadline: Deadline) -> Json | None:
        return self._calls.get_job(launch.namespace, launch.object_name, deadline)

    def _live_job(self, launch: Launch, ref: ObjectRef, deadline: Deadline) -> Json | None:
        """Give the object with this UID unless it is gone or going."""
        job = self._get(launch, deadline)
        return job if is_live(job, ref) else None

    def _adopt(
        self, launch: Launch, deadline: Deadline, error: ObjectExists | ClusterUnreachable
    ) -> ObjectRef:
        """Take the object that exists; without an answer to the create it may or may not."""
        # Refused before it was looked at, so it cannot have acted; a look would add to the load.
        if isinstance(error, ClusterThrottled):
            raise error
        job = self._get(launch, deadline)
        if job is not None:
            return _own_ref(job, launch)
        if isinstance(error, ClusterUnreachable):
            raise error
        raise ClusterUnreachable(f"{launch.object_name} was just deleted") from error

    def _check_created(self, job: Json, launch: Launch, deadline: Deadline) -> None:
        """Read back what was stored; an object that would not behave as planned is removed."""
        unsuspended = "" if is_suspended(job) else "something in the cluster unsuspended it at once"
        # The answer to a create is what was stored, after every mutating webhook. What a controller
        # changes later is looked for again before the start.
        words = disagreement(job, launch) or unsuspended
        if words:
            self._calls.delete_job(_ref(job), deadline)
            raise ClusterRejected(
                f"the cluster changed {launch.object_name} when it was created: {words}",
                hint="exempt the namespace from that webhook or controller",
            )

    def _try_unsuspend(self, job: Json, deadline: Deadline) -> bool:
        changed = self._patch(job, {"spec": {"runPolicy": {"suspend": False}}}, deadline)
        # The answer is the stored object, so somebody undid the change within the same request.
        if is_suspended(changed):
            raise ClusterRejected(
                f"something in the cluster keeps {text_at(job, 'metadata', 'name')} suspended",
                hint="is the namespace managed by Kueue? only one queue can own a job",
            )
        return changed is not None

    def _open(self, launch: Launch, view: GateView, deadline: Deadline) -> bool:
        """Open what is to be opened; True once every planned replica is open."""
        opened = [self._open_one(launch, opening, deadline) for opening in view.openings]
        return view.is_complete and all(opened)

    def _open_one(self, launch: Launch, opening: Opening, deadline: Deadline) -> bool:
        """Open one pod; False when it changed meanwhile or time ran out: the next pass goes on."""
        # A thousand patches do not fit into one call. What is open stays open: the scheduler may
        # bind those pods early, but their places are reserved and nobody else's.
        if deadline.is_near(RESERVE_SECONDS):
            return False
        try:
            self._calls.patch_pod(opening.pod, opening_patch(launch, opening), deadline)
        except (ObjectAbsent, ObjectChanged):
            return False
        return True

    def _record_recreated(
        self, launch: Launch, job: Json, view: GateView, deadline: Deadline
    ) -> None:
        """Note the UIDs of re-created pods before they are opened, so that none is forgotten."""
        # UIDs in a set rather than a counter: a pass that dies before its patch repeats the note.
        new = {text_at(opening.pod, "metadata", "uid") for opening in view.openings}
        known = recreated_uids(job)
        if not new <= known and len(known) < MOST_RECORDED:
            noted = {RECREATED_ANNOTATION: ",".join(sorted(known | new))}
            self._annotate(launch, _ref(job), noted, deadline)

    def _annotate(
        self, launch: Launch, ref: ObjectRef, values: dict[str, Any], deadline: Deadline
    ) -> None:
        change = {"metadata": {"annotations": values}}

        def settle(job: Json) -> bool:
            return self._patch(job, change, deadline) is not None

        trouble = f"{ref.name} changes too fast to be annotated"
        _insist(partial(self._live_job, launch, ref, deadline), settle, trouble)

    def _patch(self, job: Json, change: dict[str, Any], deadline: Deadline) -> Json | None:
        """Give the changed object; None when it is gone or was changed by somebody else."""
        try:
            return self._calls.patch_job(job, change, deadline)
        except (ObjectAbsent, ObjectChanged):
            return None


def _insist(
    look_again: Callable[[], Json | None], settle: Callable[[Json], bool], trouble: str
) -> None:
    """Let `settle` try on ever newer versions of the object, until it did or that is gone."""
    for _ in range(MOST_TRIES):
        job = look_again()
        if job is None or settle(job):
            return
    raise ClusterUnreachable(trouble)


def _ref(job: Json) -> ObjectRef:
    return ObjectRef(
        namespace=text_at(job, "metadata", "namespace"),
        name=text_at(job, "metadata", "name"),
        uid=text_at(job, "metadata", "uid"),
    )


def _own_ref(job: Json, launch: Launch) -> ObjectRef:
    if is_own(job, launch):
        return _ref(job)
    raise ForeignObject(
        f"PyTorchJob {launch.object_name} exists in {launch.namespace} and is not this attempt's",
        value=text_at(job, "metadata", "uid"),
        hint="delete it or submit the job under another name",
    )


def _refuse_disagreement(job: Json, launch: Launch) -> None:
    words = disagreement(job, launch)
    if words:
        raise ClusterRejected(
            f"{launch.object_name} was changed before it started: {words}",
            hint="submit the job again and leave its object alone",
        )
