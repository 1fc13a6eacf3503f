"""Credentials: the first place that names them wins, and none of them leaks."""

import json
from pathlib import Path

import pytest

from gateway.errors import GatewayError, InvalidInput, Unauthenticated
from gateway.sdk.credentials import Credentials, context_path, find_credentials

DEV = {"url": "http://127.0.0.1:8470", "token": "from-context"}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Give an environment in which `gateway dev` runs."""
    (tmp_path / "context.json").write_text(json.dumps(DEV))
    return {"TRAINING_GATEWAY_STATE_DIR": str(tmp_path)}


def test_the_gateway_of_this_machine_is_found_by_itself(environment: dict[str, str]) -> None:
    found = find_credentials(environment=environment)
    assert (found.url, found.token()) == (DEV["url"], "from-context")
    assert found.is_loopback


def test_the_environment_wins_over_the_context(environment: dict[str, str]) -> None:
    named = {
        **environment,
        "TRAINING_GATEWAY_URL": "https://gateway.example/",
        "TRAINING_GATEWAY_TOKEN": "from-environment",
    }
    found = find_credentials(environment=named)
    assert (found.url, found.token()) == ("https://gateway.example", "from-environment")
    assert not found.is_loopback


def test_an_argument_wins_over_everything(environment: dict[str, str]) -> None:
    named = {**environment, "TRAINING_GATEWAY_TOKEN": "x", "TRAINING_GATEWAY_URL": "http://y"}
    found = find_credentials("http://z", "argument", environment=named)
    assert (found.url, found.token()) == ("http://z", "argument")


def test_the_token_of_the_context_is_sent_nowhere_else(environment: dict[str, str]) -> None:
    found = find_credentials("https://elsewhere.example", environment=environment)
    with pytest.raises(Unauthenticated):
        found.token()


def test_a_rotated_token_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    found = find_credentials("http://x", token_file=file, environment={})
    assert found.token() == "first"
    file.write_text("second\n")
    assert found.token() == "second"


@pytest.mark.parametrize("text", ["", "two words", "anna user team-a " + "0" * 64])
def test_a_file_that_holds_no_single_token_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    with pytest.raises(Unauthenticated, match="one token"):
        find_credentials("http://x", token_file=file, environment={}).token()


def test_a_missing_token_file_says_so(tmp_path: Path) -> None:
    environment = {"TRAINING_GATEWAY_TOKEN_FILE": str(tmp_path / "missing")}
    with pytest.raises(Unauthenticated, match="cannot be read"):
        find_credentials("http://x", environment=environment).token()


@pytest.mark.parametrize("url", ["", "gateway", "ftp://x", "http://", "127.0.0.1:8470"])
def test_what_is_no_address_is_refused_with_the_form(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        find_credentials(url, environment={"TRAINING_GATEWAY_STATE_DIR": str(tmp_path)})
    assert "http://HOST:PORT" in caught.value.allowed


def test_a_broken_context_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "context.json").write_text("{")
    with pytest.raises(GatewayError, match=r"context\.json"):
        find_credentials(environment={"TRAINING_GATEWAY_STATE_DIR": str(tmp_path)})


def test_the_token_is_not_shown() -> None:
    assert "secret" not in repr(Credentials(url="http://x", _token="secret"))


def test_state_lies_in_the_home_folder_unless_said_otherwise() -> None:
    assert context_path({}).parts[-4:] == (".local", "state", "training-gateway", "context.json")
