"""Reads the log of one rank from its pod, and goes on after a broken stream where it left off."""

import re
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus

from gateway.backends.base import Launch, PlannedPod
from gateway.backends.kubeflow.answers import Answer, ObjectAbsent, read_answer
from gateway.backends.kubeflow.calls import Calls
from gateway.backends.kubeflow.names import MAIN_CONTAINER, pod_name
from gateway.backends.kubeflow.settings import KubeflowSettings
from gateway.errors import ClusterRejected, ClusterUnreachable, NotFound

WAIT_SECONDS = 1.0
# How the API server says with a 400 that there is no log yet: the container waits for its image
# or for init containers, or the pod has no node.
WAITING = re.compile(b"is waiting to start|does not have a host assigned|PodInitializing")
# RFC 3339 with nanoseconds of fixed width, as the kubelet writes it: group 1 to the second, 2 the
# zone, which is the node's own and not always Z. Equal widths make stamps of a node sort as text.
STAMP = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8})(?:\.[0-9]+)?(Z|[+-][0-9:]{5})")


class LogReader:
    """Streams logs; nothing is kept in memory beyond one line."""

    def __init__(
        self, calls: Calls, settings: KubeflowSettings, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """`sleep` waits for a container that has not started yet."""
        self._calls = calls
        self._settings = settings
        self._sleep = sleep

    def read(self, launch: Launch, rank: int, *, follow: bool, tail: int | None) -> Iterator[str]:
        """Give lines without line ends; with `follow` until the container has ended.

        Raises:
            NotFound: there is no such rank, or its pod does not exist (any more).
        """
        planned = next((pod for pod in launch.pods if pod.rank == rank), None)
        if planned is None:
            raise NotFound(f"rank {rank} does not exist", value=rank)
        query = {"container": MAIN_CONTAINER}
        if tail is not None:
            query["tailLines"] = str(tail)
        read = self._follow if follow else self._once
        return read(launch, planned, query)

    def _once(self, launch: Launch, planned: PlannedPod, query: dict[str, str]) -> Iterator[str]:
        pieces = self._open(launch, planned, query, self._settings.call_seconds)
        return _lines(pieces or iter(()))

    def _follow(self, launch: Launch, planned: PlannedPod, query: dict[str, str]) -> Iterator[str]:
        """Open at once, so that a missing pod is told before the first line is asked for."""
        idle_seconds = self._settings.log_idle_seconds
        asked = {**query, "follow": "true", "timestamps": "true"}
        first = self._open(launch, planned, asked, idle_seconds)

        def reopen(last: str) -> Iterator[bytes] | None:
            """Ask from the second of the last line on, or anew when there was none."""
            if not last:
                return self._open(launch, planned, asked, idle_seconds)
            rest = {key: value for key, value in asked.items() if key != "tailLines"}
            since = STAMP.sub(r"\1\2", last)
            return self._open(launch, planned, {**rest, "sinceTime": since}, idle_seconds)

        return self._followed(first, reopen)

    def _followed(
        self, pieces: Iterator[bytes] | None, reopen: Callable[[str], Iterator[bytes] | None]
    ) -> Iterator[str]:
        """Give lines across broken streams; time stamps tell what was given already."""
        while pieces is None:
            self._sleep(WAIT_SECONDS)
            pieces = reopen("")
        cursor = _Cursor()
        while pieces is not None:
            try:
                yield from cursor.new_lines(pieces)
            except ClusterUnreachable:
                # Nothing tells what was given already: to begin anew would give lines twice.
                if not cursor.last:
                    raise
                pieces = reopen(cursor.last)  # silent for long, or cut
            else:
                return

    def _open(
        self, launch: Launch, planned: PlannedPod, query: dict[str, str], idle_seconds: float
    ) -> Iterator[bytes] | None:
        """Begin to read; None while the container has not started."""
        name = pod_name(launch.object_name, planned.pod_set, planned.index)
        answer, pieces = self._calls.stream_log(launch.namespace, name, query, idle_seconds)
        if answer.status == HTTPStatus.OK:
            return pieces
        if _is_waiting(answer):
            return None
        try:
            read_answer(answer, "get", f"logs of pod {name} in namespace {launch.namespace}")
        except ObjectAbsent as error:
            raise NotFound(
                f"the pod of rank {planned.rank} does not exist",
                hint="it has not been created yet, or it was removed when the attempt ended",
            ) from error
        raise ClusterRejected(f"the cluster did not give the log of pod {name}")


class _Cursor:
    """Remembers the time stamp of the last line that was given."""

    def __init__(self) -> None:
        self.last = ""

    def new_lines(self, pieces: Iterator[bytes]) -> Iterator[str]:
        """Give the lines after the last one of an earlier stream, or without a stamp, as they come.

        Within one stream every line is new, also where the node's clock stood still or went back.
        """
        given = self.last
        for stamp, line in map(_stamped, _lines(pieces)):
            if not stamp or stamp > given:
                self.last = stamp or self.last
                yield line


def _is_waiting(answer: Answer) -> bool:
    return answer.status == HTTPStatus.BAD_REQUEST and WAITING.search(answer.body) is not None


def _lines(pieces: Iterator[bytes]) -> Iterator[str]:
    rest = b""
    for piece in pieces:
        # Not splitlines(): a progress bar's \r and a Unicode separator stay inside their line.
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")


def _stamped(line: str) -> tuple[str, str]:
    """Split off the time stamp that the kubelet puts first; empty when there is none."""
    stamp, _, text = line.partition(" ")
    return (stamp, text) if STAMP.fullmatch(stamp) else ("", line)
