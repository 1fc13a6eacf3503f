"""Lines of one rank: whole, by tail, and followed across broken streams without doubles."""

import pytest

from gateway.backends.kubeflow import KubeflowSettings
from gateway.backends.kubeflow.answers import Answer
from gateway.backends.kubeflow.calls import Calls
from gateway.backends.kubeflow.logs import LogReader
from gateway.errors import ClusterRejected, ClusterUnreachable, NotFound
from tests.contract.backends.launches import a_launch
from tests.unit.backends.kubeflow.a_cluster import ClusterInMemory, status

OK = Answer(status=200)
WAITING = status(400, message='container "pytorch" in pod "x" is waiting to start: PodInitializing')
GONE = status(404, name="digits", kind="pods")
CUT = ClusterUnreachable("cut")


class Pauses:
    """Notes instead of sleeping."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def stamp(second: int, text: str) -> bytes:
    return f"2026-01-01T00:00:{second:02d}.123456789Z {text}\n".encode()


def reader(cluster: ClusterInMemory, pauses: Pauses | None = None) -> LogReader:
    return LogReader(Calls(cluster, 5.0), KubeflowSettings(), pauses or Pauses())


def test_lines_are_put_together_from_pieces() -> None:
    cluster = ClusterInMemory()
    cluster.streams = [(OK, [b"fi", b"rst\nsec", b"ond\n\n", b"\xff"])]

    lines = list(reader(cluster).read(a_launch(), 1, follow=False, tail=7))

    assert lines == ["first", "second", "", "\ufffd"]
    assert cluster.requests[0].path.endswith("/pods/digits-ab12-1-worker-0/log")
    assert cluster.requests[0].query == {"container": "pytorch", "tailLines": "7"}


def test_a_container_that_has_not_started_has_no_lines() -> None:
    cluster = ClusterInMemory()
    cluster.streams = [(WAITING, [])]

    assert list(reader(cluster).read(a_launch(), 0, follow=False, tail=None)) == []


def test_a_rank_or_a_pod_that_does_not_exist_is_not_found() -> None:
    cluster = ClusterInMemory()
    cluster.streams = [(GONE, [])]

    with pytest.raises(NotFound, match="rank 9"):
        reader(cluster).read(a_launch(), 9, follow=False, tail=None)
    with pytest.raises(NotFound, match="pod of rank 0"):
        reader(cluster).read(a_launch(), 0, follow=False, tail=None)


def test_another_refusal_is_told() -> None:
    cluster = ClusterInMemory()
    cluster.streams = [(status(400, message="container pytorch is not valid"), [])]

    with pytest.raises(ClusterRejected, match="not valid"):
        reader(cluster).read(a_launch(), 0, follow=False, tail=None)


def test_following_waits_for_the_container_to_start() -> None:
    cluster, pauses = ClusterInMemory(), Pauses()
    cluster.streams = [(WAITING, []), (WAITING, []), (OK, [stamp(1, "up")])]

    lines = list(reader(cluster, pauses).read(a_launch(), 0, follow=True, tail=None))

    assert lines == ["up"]
    assert pauses.seconds == [1.0, 1.0]


def test_a_broken_stream_goes_on_after_the_last_line() -> None:
    cluster = ClusterInMemory()
    cluster.streams = [
        (OK, [stamp(1, "a"), stamp(2, "b"), CUT]),
        (OK, [CUT]),
        (OK, [stamp(2, "b"), stamp(3, "c d")]),
    ]

    lines = list(reader(cluster).read(a_launch(), 0, follow=True, tail=2))

    assert lines == ["a", "b", "c d"]
    assert cluster.requests[0].query["tailLines"] == "2"
    assert cluster.requests[2].query["sinceTime"] == "2026-01-01T00:00:02Z"
    assert "tailLines" not in cluster.requests[2].query


def test_lines_without_stamps_are_given_as_they_are() -> None:
    cluster = ClusterInMemory()
    cluster.streams = [(OK, [b"plain text\n", CUT])]
    lines = reader(cluster).read(a_launch(), 0, follow=True, tail=None)

    assert next(lines) == "plain text"
    with pytest.raises(ClusterUnreachable):
        next(lines)
