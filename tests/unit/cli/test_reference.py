"""The reference pages say what the code says."""

from pathlib import Path

import pytest

from gateway.cli.app import run
from gateway.cli.reference import pages

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "reference"


@pytest.mark.parametrize("name", ["settings.md", "words.md", "errors.md"])
def test_a_reference_page_is_what_the_code_gives(name: str) -> None:
    assert (FOLDER / name).read_text() == pages()[name], "run: make docs"


def test_every_setting_and_reason_has_a_meaning() -> None:
    for name in ("settings.md", "words.md"):
        rows = [line for line in pages()[name].splitlines() if line.startswith("| `")]
        assert rows
        assert all(row.rstrip("|").rsplit("|", 1)[1].strip() for row in rows if "Env" in row)


@pytest.mark.parametrize(
    "command",
    [
        *("dev", "serve", "db", "submit", "ls", "show", "explain", "events", "logs", "wait"),
        *("cancel", "hold", "release", "requeue", "reprioritise", "queue", "cohort", "flavor"),
        *("apply", "export", "node", "device", "doctor", "completion", "share", "whoami"),
    ],
)
def test_every_promised_command_explains_itself(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, "--help"]) == 0
    assert f"gateway {command}" in capsys.readouterr().out


def test_a_usage_error_exits_with_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["submit"]) == 2
    assert "FILE" in capsys.readouterr().err
    assert run(["no-such-command"]) == 2


def test_completion_is_printed_for_the_known_shells(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["completion", "bash"]) == 0
    assert "_gateway_completion" in capsys.readouterr().out
    assert run(["completion", "tcsh"]) == 3
    assert "bash, zsh, fish" in capsys.readouterr().err
