"""Streams that break, stand still, come from another zone or are no lines at all."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.kubeflow import KubeflowSettings
from gateway.backends.kubeflow.answers import Answer
from gateway.backends.kubeflow.calls import Calls
from gateway.backends.kubeflow.logs import LogReader, _lines
from gateway.errors import ClusterRejected, ClusterUnreachable, NotFound
from tests.contract.backends.launches import a_launch
from tests.unit.backends.kubeflow.a_cluster import ClusterInMemory, status

OK = Answer(status=200)
CUT = ClusterUnreachable("cut")
Stream = tuple[Answer, list[bytes | Exception]]


class Log:
    """The log of rank 0, as these streams give it one after another."""

    def __init__(self, *streams: Stream) -> None:
        self.cluster = ClusterInMemory()
        self.cluster.streams = list(streams)
        self.pauses: list[float] = []
        self.reader = LogReader(
            Calls(self.cluster, 5.0), KubeflowSettings(), sleep=self.pauses.append
        )

    def followed(self, tail: int | None = None) -> list[str]:
        """Follow it to its end."""
        return list(self.reader.read(a_launch(), 0, follow=True, tail=tail))

    def since(self) -> list[str]:
        """Give from when on each later stream was asked for."""
        return [request.query["sinceTime"] for request in self.cluster.requests[1:]]


def line(stamp: str, text: str) -> bytes:
    return f"{stamp} {text}\n".encode()


def at(second: int, text: str, zone: str = "Z", nanos: str = "500000000") -> bytes:
    return line(f"2026-01-01T12:00:{second:02d}.{nanos}{zone}", text)


@pytest.mark.parametrize("zone", ["Z", "+00:00", "+02:00", "+05:45", "-08:00"])
def test_a_stream_is_resumed_at_the_nodes_own_second_in_its_own_zone(zone: str) -> None:
    log = Log((OK, [at(1, "a", zone), CUT]), (OK, [at(1, "a", zone), at(2, "b", zone)]))

    assert log.followed() == ["a", "b"]
    assert log.since() == [f"2026-01-01T12:00:01{zone}"]


def test_lines_of_one_instant_are_all_given() -> None:
    log = Log((OK, [at(1, "first"), at(1, "second"), at(1, "third")]))

    assert log.followed() == ["first", "second", "third"]


def test_lines_are_given_while_the_nodes_clock_is_set_back() -> None:
    log = Log((OK, [at(9, "before"), at(3, "after"), at(4, "later")]))

    assert log.followed() == ["before", "after", "later"]


def test_a_stream_that_breaks_again_and_again_gives_each_line_once() -> None:
    first: Stream = (OK, [at(1, "a"), at(2, "b"), CUT])
    streams: list[Stream] = [
        (OK, [at(second - 1, "old"), at(second, f"line {second}"), CUT]) for second in range(3, 9)
    ]
    log = Log(first, *streams, (OK, [at(8, "old")]))

    assert log.followed() == ["a", "b", *(f"line {second}" for second in range(3, 9))]
    assert log.since()[-1] == "2026-01-01T12:00:08Z"


def test_half_a_line_before_the_break_is_given_whole_after_it() -> None:
    whole = at(2, "the whole line")
    log = Log((OK, [at(1, "a"), whole[:45], CUT]), (OK, [at(1, "a"), whole]))

    assert log.followed() == ["a", "the whole line"]


def test_a_tail_counts_once_although_the_stream_broke() -> None:
    log = Log((OK, [at(1, "a"), CUT]), (OK, [at(1, "a"), at(2, "b")]))

    assert log.followed(tail=1) == ["a", "b"]
    assert [request.query.get("tailLines") for request in log.cluster.requests] == ["1", None]


def test_a_tail_of_nothing_is_asked_for_as_such() -> None:
    log = Log((OK, []))

    assert log.followed(tail=0) == []
    assert log.cluster.requests[0].query["tailLines"] == "0"


@pytest.mark.parametrize(
    "text",
    [
        "plain words",
        "",
        "2026-01-01 12:00:00 not the kubelet's",
        "2026-01-01T12:00:00.5 no zone",
        "20260101T120000Z basic form",
        "٢٠٢٦-01-01T12:00:00Z other digits",
    ],
)
def test_a_line_that_only_looks_stamped_is_given_as_it_is(text: str) -> None:
    assert Log((OK, [f"{text}\n".encode()])).followed() == [text]


def test_a_text_that_begins_with_a_stamp_of_its_own_keeps_it() -> None:
    inner = "2020-02-02T02:02:02Z epoch 1"

    assert Log((OK, [at(1, inner)])).followed() == [inner]


def test_a_stream_that_breaks_before_its_first_line_is_an_outage() -> None:
    with pytest.raises(ClusterUnreachable, match="cut"):
        Log((OK, [CUT])).followed()


@pytest.mark.parametrize(
    "message",
    [
        'container "pytorch" in pod "x" is waiting to start: ContainerCreating',
        'container "pytorch" in pod "x" is waiting to start: PodInitializing',
        "pod x does not have a host assigned",
    ],
)
def test_whatever_keeps_a_container_from_starting_is_waited_for(message: str) -> None:
    waiting: Stream = (status(400, message=message), [])
    log = Log(waiting, waiting, waiting, (OK, [at(1, "up")]))

    assert log.followed() == ["up"]
    assert log.pauses == [1.0] * 3


def test_a_pod_that_vanishes_while_it_is_waited_for_is_not_found() -> None:
    log = Log(
        (status(400, message="PodInitializing"), []), (status(404, name="x", kind="pods"), [])
    )

    with pytest.raises(NotFound) as caught:
        log.followed()
    assert caught.value.detail == "the pod of rank 0 does not exist"
    assert caught.value.hint.startswith("it has not been created yet, or it was removed")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (status(400, message="container x is not valid for pod"), ClusterRejected),
        (status(403, message="no pods/log"), ClusterUnreachable),
        (status(429), ClusterUnreachable),
        (status(500), ClusterUnreachable),
        (Answer(status=302, body=b"<html>"), ClusterUnreachable),
        (Answer(status=206, body=b"{}"), ClusterRejected),
    ],
)
@pytest.mark.parametrize("follow", [True, False])
def test_what_is_no_log_is_told_before_the_first_line(
    answer: Answer, error: type[Exception], *, follow: bool
) -> None:
    log = Log((answer, []))

    with pytest.raises(error):
        log.reader.read(a_launch(), 0, follow=follow, tail=None)


@pytest.mark.parametrize("rank", [-1, 2, 10_000])
def test_a_rank_outside_the_gang_is_refused_without_a_request(rank: int) -> None:
    log = Log()

    with pytest.raises(NotFound, match=f"rank {rank} does not exist"):
        log.reader.read(a_launch(), rank, follow=True, tail=None)
    assert log.cluster.requests == []


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=5))
def test_lines_do_not_depend_on_how_the_bytes_arrive(content: bytes, cuts: list[int]) -> None:
    edges = sorted({0, *cuts, len(content)})
    pieces = [content[a:b] for a, b in pairwise(edges)]
    whole = content.removesuffix(b"\n").split(b"\n") if content else []

    assert list(_lines(iter(pieces))) == [part.decode("utf-8", "replace") for part in whole]


def test_a_progress_bar_and_odd_separators_stay_on_their_line() -> None:
    text = "10 %\r20 %\r\u2028done\x0b"

    assert list(_lines(iter([f"{text}\nnext".encode()]))) == [text, "next"]
