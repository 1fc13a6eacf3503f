"""Rules of queues and priority classes by the command line, against a real server."""

import json
from pathlib import Path

import pytest

from tests.acceptance.cli.conftest import Command, Ran

NEW_YEAR = "2030-01-01T00:00:00Z"
EVERY_RULE = (
    *("--order", "fair_users", "--ageing", "5/50", "--blocking", "strict"),
    *("--when-can-borrow", "try_next_flavor", "--priority-class", "high"),
    *("--cap", "queued_jobs=10", "--cap", "user-gpus=16", "--budget", "100/7d"),
    *("--change", f"{NEW_YEAR},default/gpu=8"),
)


@pytest.fixture
def root(gateway: Command) -> Command:
    """Give the commands of an admin, with a cohort and a priority class defined."""

    def command(*arguments: str, caller: str = "root") -> Ran:
        return gateway(*arguments, caller=caller)

    assert gateway("cohort", "create", "lab", caller="root").code == 0
    assert gateway("priority-class", "create", "high", "5", caller="root").code == 0
    return command


def test_a_queue_is_created_with_every_rule_and_shows_them(root: Command) -> None:
    created = root("queue", "create", "research", "--cohort", "lab", *EVERY_RULE)
    assert (created.code, created.err) == (0, "queue research created\n")
    shown = root("queue", "show", "research").out
    for line in ("order", "fair_users", "5/50", "strict", "try_next_flavor", "high", "100/7d"):
        assert line in shown
    assert "queued_jobs=10 user_gpus=16" in shown
    assert f"{NEW_YEAR},default/gpu=8" in shown


def test_what_is_not_named_stays_and_none_takes_away(root: Command) -> None:
    root("queue", "create", "research", *EVERY_RULE)
    changed = root("queue", "set", "research", "--cap", "user_gpus=none", "--budget", "none")
    assert changed.code == 0, changed.err
    queue = json.loads(root("queue", "show", "research", "-o", "json").out)
    assert (queue["caps"]["queued_jobs"], queue["caps"]["user_gpus"]) == (10, None)
    assert (queue["budget"], queue["order"], queue["version"]) == (None, "fair_users", 2)
    cleared = root("queue", "set", "research", "--change", "none", "--priority-class", "none")
    assert cleared.code == 0
    queue = json.loads(root("queue", "show", "research", "-o", "json").out)
    assert (queue["changes"], queue["priority_classes"]) == ([], [])


def test_what_is_exported_can_be_applied(root: Command, tmp_path: Path) -> None:
    root("queue", "create", "research", "--cohort", "lab", *EVERY_RULE)
    root("cohort", "set", "lab", "--change", f"{NEW_YEAR},default/gpu=2")
    document = root("export").out
    assert "priority_classes" in document
    path = tmp_path / "all.yaml"
    path.write_text(document)
    applied = root("apply", "-f", str(path))
    assert applied.code == 0, applied.err
    path.write_text(document.replace("value: 5", "value: 6"))
    changed = root("apply", "-f", str(path))
    assert "priority-class high: value 5 -> 6" in changed.out + changed.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("queue", "create", "q", "--quota", "default/gpu=-1"), 3, "cannot be negative"),
        (("queue", "create", "q", "--quota", "h100/gpu=1"), 3, "flavor 'h100' does not exist"),
        (
            ("cohort", "create", "q", "--parent", "lab", "--quota", "default/gpu=1,lend=2"),
            3,
            "is above",
        ),
        (("queue", "create", "q", "--weight", "-1"), 2, "weight"),
        (("queue", "create", "q", "--order", "fair_user"), 3, "did you mean 'fair_users'?"),
        (("queue", "create", "q", "--cap", "user_gpus=-1"), 3, "for example: --cap"),
        (("queue", "create", "q", "--ageing", "-1/5"), 3, "for example: --ageing"),
        (("queue", "create", "q", "--budget", "5/0d"), 3, "greater than or equal to 1"),
        (("queue", "create", "q", "--priority-class", "hgh"), 3, "did you mean 'high'?"),
        (("queue", "create", "q", "--blocking", "maybe"), 3, "strict"),
        (
            (
                *("queue", "create", "q", "--change", f"{NEW_YEAR},default/gpu=1"),
                *("--change", f"{NEW_YEAR},default/gpu=2"),
            ),
            3,
            "at one instant",
        ),
        (("cohort", "create", "lab-a", "--parent", "nowhere"), 3, "does not exist"),
        (("cohort", "set", "lab", "--parent", "lab"), 3, "its own ancestor"),
        (("flavor", "create", "all"), 3, "would belong to the flavors"),
        (("priority-class", "create", "high", "7"), 3, "exists already"),
        (("priority-class", "show", "low"), 4, "does not exist"),
    ],
)
def test_a_bad_definition_is_refused_and_changes_nothing(
    root: Command, arguments: tuple[str, ...], code: int, words: str
) -> None:
    before = root("export").out
    ran = root(*arguments)
    assert ran.code == code, ran.err
    assert words in ran.err
    assert root("export").out == before


def test_a_job_says_its_class_and_its_times(root: Command, tmp_path: Path) -> None:
    root("queue", "set", "default", "--priority-class", "high")
    path = tmp_path / "train.yaml"
    path.write_text("{name: train, namespace: team-a, image: 'example/train:1'}")
    times = ("--not-before", NEW_YEAR, "--deadline", NEW_YEAR, "--expected-seconds", "60")
    ran = root("submit", str(path), "--priority-class", "high", *times, caller="anna")
    assert ran.code == 0, ran.err
    job = json.loads(root("show", ran.out.strip(), "-o", "json").out)
    assert (job["priority_class"], job["not_before_at"]) == ("high", NEW_YEAR)
    assert (job["deadline_at"], job["expected_seconds"]) == (NEW_YEAR, 60)
    assert "priority 3, class high" in root("reprioritise", "train", "3", caller="anna").err
    assert root("reprioritise", "train", "--class", "", caller="anna").err.endswith("priority 3\n")
    assert root("reprioritise", "train", caller="anna").code == 2
    refused = root("priority-class", "delete", "high")
    assert (refused.code, "in use by queue default" in refused.err) == (3, True)
