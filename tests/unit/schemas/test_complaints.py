"""What a model complains of is told in words, with what is allowed and what to do."""

import json
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from gateway.errors import InvalidInput
from gateway.schemas.complaints import refusal
from gateway.schemas.definitions import DefinitionSet, QueueSpec

QUEUE: dict[str, Any] = {"name": "research"}


def complaint(model: type[BaseModel], values: dict[str, Any]) -> InvalidInput:
    with pytest.raises(ValidationError) as caught:
        # As bodies and files come: strict models take texts for enums in JSON only.
        model.model_validate_json(json.dumps(values))
    return refusal(model, values, caught.value)


def test_a_wrong_word_is_told_with_the_allowed_ones_and_the_nearest() -> None:
    told = complaint(QueueSpec, {**QUEUE, "blocking": "Strict!"})
    assert told.detail == "/blocking: 'Strict!' is none of the allowed values"
    assert told.allowed == ("strict", "best_effort")
    assert told.hint == "did you mean 'strict'?"
    far = complaint(QueueSpec, {**QUEUE, "blocking": "zzz"})
    assert far.hint == "choose one of the allowed values"


@pytest.mark.parametrize("word", ["tomorrow", "2030-01-01", "2030-01-01T00:00:00"])
def test_a_time_without_a_zone_is_told_with_an_example(word: str) -> None:
    budget = {"gpu_hours": 1, "window_seconds": 86400, "starts_at": word}
    told = complaint(QueueSpec, {**QUEUE, "budget": budget})
    assert (told.pointer, told.value) == ("/budget/starts_at", word)
    assert told.detail.endswith(f"{word!r} is not a time with a zone")
    assert "2030-01-31T18:00:00Z" in told.hint


@pytest.mark.parametrize(
    ("values", "detail", "hint"),
    [
        ({}, "/name: this field is missing", "add this field"),
        ({"name": "Lab_x"}, "/name: 'Lab_x' is no name", "correct this value"),
        (
            {**QUEUE, "weight": -1},
            "/weight: weight must be greater than or equal to 0",
            "correct this value",
        ),
        ({**QUEUE, "weigth": 1}, "unknown field 'weigth'", "did you mean 'weight'?"),
    ],
)
def test_each_complaint_has_words_and_a_next_step(
    values: dict[str, Any], detail: str, hint: str
) -> None:
    told = complaint(QueueSpec, values)
    assert (told.detail, told.hint) == (detail, hint)


def test_a_name_is_told_with_what_names_are_made_of() -> None:
    (allowed,) = complaint(QueueSpec, {"name": "Lab_x"}).allowed
    assert "lower-case letters, digits and dashes" in allowed


def test_several_complaints_are_counted() -> None:
    told = complaint(DefinitionSet, {"queues": 1, "cohorts": 2})
    assert told.detail.endswith("(and 1 more)")
