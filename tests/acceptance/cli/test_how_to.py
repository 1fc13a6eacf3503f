"""What the how-to pages tell to type is typed here, in order, at a fresh gateway."""

import re
import shlex
from pathlib import Path

import pytest

from tests.acceptance.cli.conftest import Command

PAGES = Path(__file__).resolve().parents[3] / "docs" / "how-to"
BLOCK = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def lines_of(page: str) -> list[str]:
    """Give the command lines of a page's blocks, those that go on below as one."""
    blocks = BLOCK.findall((PAGES / page).read_text())
    whole = "".join(blocks).replace("\\\n", " ")
    return [line for line in whole.splitlines() if line.startswith("gateway ")]


def test_every_command_of_share_a_fleet_does_what_the_page_says(
    gateway: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = lines_of("share-a-fleet.md")
    assert len(lines) >= 10
    for line in lines:
        words, _, target = line.partition(" > ")
        ran = gateway(*shlex.split(words)[1:], caller="root")
        assert ran.code == 0, f"{line}\n{ran.err}"
        if target:
            Path(target).write_text(ran.out)
    # The last line applies, dry, what the one before it exported.
    assert ran.err == "nothing to change\n"
