"""What is written without models is what the models would have written."""

import json
from datetime import timedelta
from typing import Any

import pytest

from gateway.api.batch_answers import item_text
from gateway.core.vocabulary import JobState, Reason
from gateway.errors import Denied, GatewayError, InvalidInput, NameTaken, NeverFits
from gateway.schemas.base import instant
from gateway.schemas.problems import problem_of
from gateway.schemas.views import BatchItem, JobView
from gateway.service.presenting import NewJobText, new_job_view
from gateway.service.storing import Submitted

INSTANTS = (0, 1, 1_000_000, 1_800_000_000_000_000, 1_800_000_000_120_000, 1_800_000_000_999_999)


def columns(**changes: Any) -> dict[str, Any]:
    """Give what is inserted for a job."""
    return {
        "uid": "01990000-0000-7000-8000-000000000000",
        "name": "example",
        "namespace": "team-a",
        "queue": "default",
        "user_name": 'ann "the" ä\\\n',
        "priority": -5,
        "pods": 2,
        "gpus": 16,
        "rdma": 0,
        "state": "pending",
        "reason": None,
        "submitted_us": 5,
        "priority_class": "high",
        "eligible_us": 7,
        "deadline_us": 0,
        "expected_seconds": 60,
        **changes,
    }


@pytest.mark.parametrize("submitted_us", INSTANTS)
@pytest.mark.parametrize("state", [JobState.PENDING, JobState.HELD])
@pytest.mark.parametrize("labels", [{}, {"name": "x", "submitted_at": "0", "a/b": "ü"}])
def test_a_new_job_is_written_as_its_view_is(
    submitted_us: int, state: JobState, labels: dict[str, str]
) -> None:
    reason = Reason.HELD.value if state is JobState.HELD else None
    writer = NewJobText(new_job_view(columns(state=state.value, reason=reason), labels))
    told = {"uid": "an-id", "name": "a-name", "submitted_us": submitted_us}
    view = new_job_view(columns(state=state.value, reason=reason, **told), labels)
    assert writer.of("an-id", "a-name", submitted_us) == view.model_dump_json()


def a_view(**changes: Any) -> JobView:
    return new_job_view(columns(), {"team": "vision"}).model_copy(update=changes)


@pytest.mark.parametrize(
    "view",
    [
        a_view(),
        a_view(state=JobState.HELD, reason=Reason.HELD),
        a_view(state=JobState.FAILED, exit_code=3, ended_at=instant(7) + timedelta(days=1)),
    ],
)
@pytest.mark.parametrize("is_new", [True, False])
def test_a_stored_job_is_written_as_its_item_is(view: JobView, *, is_new: bool) -> None:
    outcome = Submitted(view.id, view.version, is_new=is_new, text=view.model_dump_json())
    expected = BatchItem(index=7, job=view, is_new=is_new)
    assert item_text(7, outcome) == expected.model_dump_json()
    assert outcome.job == view


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("odd", pointer="/a", value={"x": "y"}, allowed=("b", "c"), hint='say "b"'),
        Denied("no"),
        NameTaken("taken", value="ä"),
        NeverFits("never"),
    ],
)
def test_a_refusal_is_written_as_its_item_is(error: GatewayError) -> None:
    expected = BatchItem(index=3, error=problem_of(error))
    assert item_text(3, error) == expected.model_dump_json()
    assert json.loads(item_text(3, error))["error"]["code"] == error.code
