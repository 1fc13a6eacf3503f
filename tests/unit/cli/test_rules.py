"""Rules of queues in the words of the command line, read and written."""

from typing import Any

import pytest

from gateway.cli import rules
from gateway.errors import InvalidInput
from gateway.schemas.definitions import QueueView
from gateway.schemas.queue_rules import BudgetSpec, DatedChangeSpec

AT = "2030-01-31T18:00:00Z"


@pytest.mark.parametrize(
    ("text", "hours", "seconds"),
    [("1000/7d", 1000, 604_800), ("0.5/12h", 0.5, 43_200), ("0/90s", 0, 90)],
)
def test_a_budget_is_hours_over_a_window(text: str, hours: float, seconds: int) -> None:
    assert rules.read_budget(text) == {"gpu_hours": hours, "window_seconds": seconds}
    assert rules.budget_words(BudgetSpec(gpu_hours=hours, window_seconds=seconds)) == text


def test_a_budget_may_name_the_start_of_a_window_or_be_none() -> None:
    assert rules.read_budget(f"8/1d,from={AT}") == {
        "gpu_hours": 8,
        "window_seconds": 86_400,
        "starts_at": AT,
    }
    assert rules.read_budget("none") is None
    stored = BudgetSpec.model_validate_json(
        f'{{"gpu_hours": 8, "window_seconds": 86400, "starts_at": "{AT}"}}'
    )
    assert rules.budget_words(stored) == f"8/1d,from={AT}"


@pytest.mark.parametrize(
    ("row", "values"),
    [
        (f"{AT},default/gpu=8", {"nominal": 8}),
        (
            f"{AT},default/gpu=8,borrow=1,lend=0",
            {"nominal": 8, "borrowing_limit": 1, "lending_limit": 0},
        ),
        (f"{AT},default/gpu,lend=2", {"nominal": None, "lending_limit": 2}),
        (f"{AT},default/memory=64Gi", {"resource": "memory", "nominal": "64Gi"}),
        (f"{AT},default/example.com/fpga=1", {"resource": "example.com/fpga", "nominal": 1}),
    ],
)
def test_a_dated_change_reads_as_a_quota_row_behind_its_time(
    row: str, values: dict[str, Any]
) -> None:
    (change,) = rules.read_changes([row])
    assert change == {"at": AT, "flavor": "default", "resource": "gpu", **values}
    stored = DatedChangeSpec.model_validate_json(rules_json(change))
    assert rules.change_words(stored) == row


def rules_json(change: dict[str, Any]) -> str:
    """Give a change as the command line sends it."""
    return DatedChangeSpec.model_construct(**change).model_dump_json(warnings=False)


def test_caps_and_ageing_are_read_and_taken_away() -> None:
    assert rules.read_caps(["running-jobs=3", "user_gpus=none"]) == {
        "running_jobs": 3,
        "user_gpus": None,
    }
    assert rules.read_ageing("10/200") == {"per_hour": 10, "cap": 200}
    assert rules.read_ageing("none") == {"per_hour": 0, "cap": 0}
    assert (rules.read_changes(["none"]), rules.read_names(["none"])) == ([], [])
    assert rules.read_names(["high", "low"]) == ["high", "low"]


@pytest.mark.parametrize(
    ("read", "text", "option"),
    [
        (lambda text: rules.read_caps([text]), "running_jobs", "--cap"),
        (lambda text: rules.read_caps([text]), "running_jobs=-1", "--cap"),
        (lambda text: rules.read_caps([text]), "runing_jobs=1", "--cap"),
        (lambda text: rules.read_caps([text]), "user_gpus=²", "--cap"),
        (rules.read_ageing, "10", "--ageing"),
        (rules.read_ageing, "10/-5", "--ageing"),
        (rules.read_budget, "1000", "--budget"),
        (rules.read_budget, "1000/7w", "--budget"),
        (rules.read_budget, "-1/7d", "--budget"),
        (rules.read_budget, "1.5.2/7d", "--budget"),
        (rules.read_budget, "/d", "--budget"),
        (lambda text: rules.read_changes([text]), AT, "--change"),
        (lambda text: rules.read_changes([text]), "default/gpu=8", "--change"),
        (lambda text: rules.read_changes([text]), f"{AT},gpu=8", "--quota"),
        (lambda text: rules.read_changes([text]), f"{AT},default/gpu=8,keep=1", "--quota"),
    ],
)
def test_words_that_say_nothing_are_refused_with_an_example(
    read: Any, text: str, option: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(text)
    assert refused.value.pointer == option
    assert "for example" in refused.value.hint


def test_a_queue_tells_its_rules_in_the_words_that_options_take() -> None:
    queue = QueueView.model_validate_json(
        f"""{{"name": "research", "version": 1, "order": "deadline", "blocking": "strict",
        "ageing": {{"per_hour": 5, "cap": 50}}, "priority_classes": ["high", "low"],
        "caps": {{"running_jobs": 2, "user_gpus": 0}},
        "budget": {{"gpu_hours": 24, "window_seconds": 86400}},
        "changes": [{{"at": "{AT}", "flavor": "default", "resource": "gpu", "nominal": 4}}]}}"""
    )
    assert dict(rules.rule_lines(queue)) == {
        "order": "deadline",
        "ageing": "5/50",
        "blocking": "strict",
        "when can borrow": "borrow",
        "priority classes": "high, low",
        "caps": "running_jobs=2 user_gpus=0",
        "budget": "24/1d",
        "change": f"{AT},default/gpu=4",
    }
