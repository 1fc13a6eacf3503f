"""Problem documents: the SDK raises what the server raised."""

import pytest

from gateway import errors
from gateway.api.problems import problem_response
from gateway.errors import GatewayError, InvalidInput, Overloaded, Unauthenticated
from gateway.schemas.problems import error_of, problem_of


def every_class(start: type[GatewayError] = GatewayError) -> list[type[GatewayError]]:
    below = [found for kind in start.__subclasses__() for found in every_class(kind)]
    return [start, *below]


@pytest.mark.parametrize("kind", every_class())
def test_every_error_survives_the_wire(kind: type[GatewayError]) -> None:
    error = kind("wrong", pointer="/a", hint="try b", value="c", allowed=("d", "e"))
    read = error_of(problem_of(error, "request-1"), error.status)
    assert type(read) is kind
    told = (read.detail, read.pointer, read.hint, read.value, read.allowed)
    assert told == ("wrong", "/a", "try b", "c", ("d", "e"))
    assert read.__notes__ == ["request id request-1"]


def test_codes_are_unique_and_the_tree_in_the_docstring_is_whole() -> None:
    # Kinds that a back end adds refine one of these, under its code.
    kinds = [kind for kind in set(every_class()) if kind.__module__ == errors.__name__]
    assert len({kind.code for kind in kinds}) == len(kinds)
    ours = [kind.__name__ for kind in kinds]
    assert [name for name in ours if name not in (errors.__doc__ or "")] == []


def test_an_unknown_code_of_a_newer_server_is_still_an_error() -> None:
    read = error_of({"code": "brand_new", "detail": "well"}, 418)
    assert type(read) is GatewayError
    assert read.detail == "well"


def test_long_and_strange_values_are_cut_short() -> None:
    told = problem_of(InvalidInput("no", value="x" * 10_000))
    assert len(told["value"]) == 200
    assert problem_of(InvalidInput("no", value={"a": object}))["value"].startswith("{'a'")
    assert "value" not in problem_of(InvalidInput("no"))


def test_the_answer_tells_how_to_come_in_and_when_to_come_again() -> None:
    refused = problem_response(Unauthenticated("who?"), "id")
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Bearer")
    busy = problem_response(Overloaded("later"), "id")
    assert busy.headers["retry-after"] == "1"
    assert busy.headers["content-type"] == "application/problem+json"
