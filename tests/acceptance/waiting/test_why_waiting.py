"""Ten jobs wait for ten different reasons, each is told right and whole, and the page shows it."""

from pathlib import Path

import pytest

from gateway.core.vocabulary import Reason
from tests.acceptance.waiting.page import PAGE, page, play_all
from tests.acceptance.waiting.playing import Played, same_each_time
from tests.acceptance.waiting.scenes import SCENES, Scene

All = list[tuple[Scene, Played]]


@pytest.fixture(scope="module")
def played(sqlite_template: Path) -> All:
    return play_all(sqlite_template)


def test_the_ten_reasons_are_different_and_right(played: All) -> None:
    assert [each.answer.reason for _, each in played] == [scene.reason for scene in SCENES]
    assert len({scene.reason for scene in SCENES}) == len(SCENES) == 10


def test_every_answer_says_what_is_so(played: All) -> None:
    for scene, each in played:
        for part in scene.says:
            assert part in each.printed, (scene.title, each.printed)


def test_every_answer_is_whole(played: All) -> None:
    for scene, each in played:
        answer = each.answer
        assert answer.causes, scene.title
        assert answer.unblock, scene.title
        assert len(answer.unblock) == len(answer.lifts)
        assert all(answer.lifts), scene.title
        assert all(same_each_time(line) in each.printed for line in answer.unblock)
        assert all(cause.detail in each.printed for cause in answer.causes)
        if scene.reason is not Reason.HELD:
            assert (answer.position, answer.jobs_ahead) == (1, 0)
        if scene.reason in {Reason.OVER_QUOTA, Reason.OVER_BORROWING_LIMIT}:
            assert answer.limiting == "research"
            assert answer.quota_path


def test_the_page_is_up_to_date(played: All) -> None:
    command = "python -m tests.acceptance.waiting.page"
    assert page(played) == PAGE.read_text(), f"run: {command}"
