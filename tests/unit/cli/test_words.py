"""What the command line prints: safe, short, and the same without colour."""

from datetime import UTC, datetime, timedelta

import pytest

from gateway.cli import exits
from gateway.cli.defining import quota_words, read_quota
from gateway.cli.explaining import explanation_lines
from gateway.cli.fleet import map_lines
from gateway.cli.terminal import age, clean, cores, gibibytes, span
from gateway.core.vocabulary import DeviceHealth, DeviceKind, JobState, Reason
from gateway.errors import (
    Denied,
    GatewayError,
    GatewayUnreachable,
    InvalidInput,
    JobFailed,
    NotFound,
    TimedOut,
    Unauthenticated,
)
from gateway.schemas.definitions import QuotaSpec
from gateway.schemas.views import CauseView, DeviceView, ExplainView, HolderView


def a_device(ordinal: int, kind: DeviceKind = DeviceKind.GPU, **changes: object) -> DeviceView:
    values: dict[str, object] = {
        "id": ordinal,
        "node": "node-1",
        "kind": kind,
        "ordinal": ordinal,
        "name": f"{kind}{ordinal}",
        "health": DeviceHealth.HEALTHY,
        "is_present": True,
        "is_foreign": False,
        "is_free": True,
        "version": 1,
    }
    return DeviceView.model_validate({**values, **changes})


def test_control_characters_of_others_never_reach_the_terminal() -> None:
    assert clean("a\x1b[2Jb\x07c\u202e") == "a\ufffd[2Jb\ufffdc\ufffd"
    assert clean("two\nlines") == "two\nlines"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (172_800, "2d")],
)
def test_spans_are_given_in_one_unit(seconds: int, words: str) -> None:
    assert span(timedelta(seconds=seconds)) == words


def test_an_age_counts_from_now_and_is_a_dash_when_unknown() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert age(moment, moment + timedelta(seconds=5)) == "5s"
    assert age(None) == "-"
    assert (cores(1500), gibibytes(3 * 2**30 + 1)) == ("1.5", "3Gi")


def test_a_quota_row_reads_back_as_it_was_written() -> None:
    row = read_quota("h100/nvidia.com/mig-1g.5gb=16,borrow=8,lend=4")
    assert row == {
        "flavor": "h100",
        "resource": "nvidia.com/mig-1g.5gb",
        "nominal": 16,
        "borrowing_limit": 8,
        "lending_limit": 4,
    }
    assert quota_words([QuotaSpec(**row)]) == "h100/nvidia.com/mig-1g.5gb=16,borrow=8,lend=4"


@pytest.mark.parametrize("text", ["gpu=1", "default/gpu", "default/gpu=", "d/g=1,steal=2", "/g=1"])
def test_a_malformed_quota_row_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_quota(text)
    assert caught.value.value == text
    assert "--quota default/gpu=16,borrow=8" in caught.value.hint


def test_the_map_gives_each_holder_a_letter_and_each_state_a_sign() -> None:
    holder = HolderView(job_id="1", job_name="train", namespace="lab", pod_set="Worker", index=0)
    cells = [
        a_device(0, is_free=False, holder=holder),
        a_device(1),
        a_device(2, is_free=False),
        a_device(3, is_foreign=True),
        a_device(4, health="unhealthy"),
        a_device(5, is_present=False),
        a_device(0, DeviceKind.RDMA, is_free=False, holder=holder),
    ]
    lines = [line.plain for line in map_lines(cells)]
    assert lines[1] == "node-1  A.#x!-    A         "
    assert lines[2] == "A  train (2 devices)"
    assert all(len(line) <= 80 for line in lines)


def test_an_explanation_names_cause_position_and_what_would_help() -> None:
    answer = ExplainView(
        job_id="1",
        name="train",
        state=JobState.PENDING,
        reason=Reason.GANG_DOES_NOT_FIT,
        summary="train waits",
        causes=(CauseView(reason=Reason.GANG_DOES_NOT_FIT, detail="2 of 2 nodes: full"),),
        unblock=("running jobs end",),
        position=1,
        jobs_ahead=0,
        serial=7,
    )
    assert explanation_lines(answer) == [
        "train waits",
        "reason     GangDoesNotFit",
        "cause      2 of 2 nodes: full",
        "position   1 in its queue, 0 ahead",
        "unblock    running jobs end",
    ]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (JobFailed("x"), 1),
        (InvalidInput("x"), 3),
        (GatewayError("x"), 3),
        (NotFound("x"), 4),
        (Denied("x"), 5),
        (Unauthenticated("x"), 5),
        (GatewayUnreachable("x"), 6),
        (TimedOut("x"), 124),
    ],
)
def test_each_kind_of_error_has_its_exit_code(error: GatewayError, code: int) -> None:
    assert exits.exit_code(error) == code


def test_an_error_is_told_with_place_value_choices_and_the_next_step(
    capsys: pytest.CaptureFixture[str],
) -> None:
    exits.tell(
        InvalidInput("bad\x1b", pointer="/queue", value="x", allowed=("a", "b"), hint="choose")
    )
    told = capsys.readouterr().err
    assert "error: bad\ufffd" in told
    for part in ("/queue", "value:   x", "allowed: a, b", "next:    choose"):
        assert part in told
