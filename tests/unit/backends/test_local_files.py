"""Files of the local back end: durable JSON, logs, and who is alive."""

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.backends.durable import read_json, write_json
from gateway.backends.local.folder import StateFolder
from gateway.backends.local.liveness import identify
from gateway.backends.local.logs import follow_lines, last_lines
from gateway.errors import ClusterRejected


def answers(*given: bool) -> Callable[[], bool]:
    left = list(given)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def test_a_document_is_replaced_whole_and_leaves_nothing_beside(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    write_json(path, {"a": 1})
    write_json(path, {"b": 2})

    assert read_json(path) == {"b": 2}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("text", ["", "{", "[1]", "\xff"])
def test_a_file_that_holds_no_object_reads_as_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.json"
    path.write_text(text, encoding="latin-1")

    assert read_json(path) is None
    assert read_json(tmp_path / "missing.json") is None


def test_the_last_lines_are_given_without_their_ends(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_bytes(b"one\r\ntwo\nthr\xffee")

    assert list(last_lines(log, None)) == ["one", "two", "thr\ufffdee"]
    assert list(last_lines(log, 2)) == ["two", "thr\ufffdee"]
    assert list(last_lines(log, 0)) == []
    assert list(last_lines(tmp_path / "1.log", None)) == []


def test_following_gives_what_is_there_and_what_comes_until_the_end(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_text("one\ntwo\nthr")
    lines = follow_lines(log, 1, answers(False, False, True))

    assert next(lines) == "two"
    with log.open("a") as stream:
        stream.write("ee\nfour\nfi")
    assert list(lines) == ["three", "four", "fi"]


def test_following_waits_for_a_log_that_is_not_there_yet(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    has_asked = threading.Event()

    def appears() -> bool:
        if has_asked.is_set():
            log.write_text("late\n")
        has_asked.set()
        return log.exists()

    assert list(follow_lines(log, None, appears)) in (["late"], [])


def test_following_ends_for_a_replica_that_never_wrote(tmp_path: Path) -> None:
    assert list(follow_lines(tmp_path / "0.log", None, answers(True))) == []


def test_a_program_is_recognised_by_more_than_its_pid() -> None:
    own = identify(os.getpid())

    assert own is not None
    assert own.is_alive()
    assert not replace(own, started_ticks=own.started_ticks + 1).is_alive()
    assert not replace(own, boot_id="another boot").is_alive()
    assert identify(2**22 + 1) is None


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "a\0b"])
def test_a_name_cannot_leave_the_state_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ClusterRejected, match="file name"):
        StateFolder(tmp_path).attempt("default", name)


@pytest.mark.parametrize("text", ["{}", '{"pid": 1}', '{"replicas": [{"phase": "odd"}]}'])
def test_a_file_of_another_release_reads_as_missing(tmp_path: Path, text: str) -> None:
    folder = StateFolder(tmp_path).attempt("default", "digits")
    folder.path.mkdir(parents=True)
    for name in ("launch.json", "supervisor.json", "status.json"):
        (folder.path / name).write_text(text)

    assert folder.launch() is None
    assert folder.supervisor() is None
    assert text == "{}" or folder.status() is None
