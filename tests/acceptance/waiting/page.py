"""Writes the page on why jobs wait, from what the commands print.

`python -m tests.acceptance.waiting.page docs/how-to/why-is-my-job-waiting.md`; a test compares the
result with what is committed.
"""

import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import yaml

from gateway.db.migrations import upgrade
from tests.acceptance.waiting.playing import CALLERS, Played, play
from tests.acceptance.waiting.scenes import FILES, SCENES, Scene

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "why-is-my-job-waiting.md"
HEAD = """\
# Why is my job waiting?

<!-- Written by `python -m tests.acceptance.waiting.page` from what the commands print. -->

`gateway explain JOB` says it at any moment: one reason, every cause with its numbers, the quota
from the queue to the top of its tree, the place in the queue, and what would let the job start.

Each `unblock` line is enough by itself: with that, and nothing else, the job starts in the next
cycle. It was tried on the present state before it was told. Where others that wait would still
come first, the line says so. Nothing is told where nothing that was tried would do. `-o json` has
the same in numbers, under `lifts`. `gateway submit --dry-run` gives the same answer for a job that
is not submitted yet, and `gateway queue order QUEUE` shows who comes when.

Below are ten jobs that wait for ten reasons on a fleet of two nodes, with eight GPUs and eight
NICs each. `$` is a user's command, `#` an admin's. Every reason is in the
[closed lists](../reference/words.md).
"""


def page(played: Iterable[tuple[Scene, Played]]) -> str:
    """Give the page."""
    parts = [HEAD, *(_section(scene, each) for scene, each in played), _files()]
    return "\n".join(parts)


def _section(scene: Scene, played: Played) -> str:
    commands = [step for step in scene.steps if step[0] in CALLERS]
    shown = [*commands, f"$ gateway explain {scene.job}", played.printed.rstrip()]
    text = "\n".join(shown)
    return f"## {scene.title}: {scene.reason.value}\n\n{scene.words}\n\n```console\n{text}\n```\n"


def _files() -> str:
    lines = ["## The files", "", "All have `image` and `command`, too.", "", "```yaml"]
    for name, fields in FILES.items():
        text = yaml.safe_dump(fields, default_flow_style=None, sort_keys=False, width=100)
        lines += [f"# {name}", text.rstrip()]
    return "\n".join([*lines, "```", ""])


def play_all(template: Path) -> list[tuple[Scene, Played]]:
    """Play every scene, each in a folder of its own, on copies of a migrated database."""
    played = []
    for scene in SCENES:
        with tempfile.TemporaryDirectory() as folder:
            played.append((scene, play(scene, Path(folder), template)))
    return played


def main(arguments: list[str]) -> None:
    """Write the page to the file named, or to its place."""
    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder) / "template.db"
        upgrade(f"sqlite:///{template}")
        target = Path(arguments[0]) if arguments else PAGE
        target.write_text(page(play_all(template)))


if __name__ == "__main__":
    main(sys.argv[1:])
