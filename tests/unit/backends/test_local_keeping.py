"""Attempt folders come whole, go whole, and are kept for a while."""

import errno
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.backends.base import ObjectOutcome, ObjectRef, ReplicaPhase
from gateway.backends.durable import read_json, write_json
from gateway.backends.local import keeping
from gateway.backends.local.folder import StateFolder
from gateway.backends.local.launching import record_of
from gateway.backends.local.liveness import Running, identify
from gateway.backends.local.program import Program
from gateway.backends.local.records import (
    ORPHANED,
    STOPPED,
    GangStatus,
    LaunchRecord,
    ReplicaRecord,
    ReplicaStatus,
)
from gateway.backends.local.rendezvous import Rendezvous
from gateway.errors import ClusterRejected
from tests.contract.backends.launches import a_launch, a_manifest

NAMES = ("..", ".", "", "a/b", "/etc", "a\0b")


def a_record(name: str = "digits", uid: str = "u-1") -> LaunchRecord:
    return record_of(
        a_launch(a_manifest(1, ["true"]), name=name),
        uid=uid,
        heartbeat_file=Path("heartbeat"),
        orphan_seconds=60,
        most_restarts=3,
    )


def a_ref(name: str = "digits", uid: str = "u-1") -> ObjectRef:
    return ObjectRef(namespace="default", name=name, uid=uid)


def test_a_placed_attempt_is_complete_and_private_and_nothing_is_left_aside(tmp_path: Path) -> None:
    state = StateFolder(tmp_path / "state")

    assert keeping.place(state, a_record())

    folder = state.attempt("default", "digits")
    assert folder.launch() == a_record()
    assert {path.name for path in folder.path.iterdir()} == {"launch.json", "logs", "plans"}
    assert list(state.incoming.iterdir()) == []
    assert folder.path.stat().st_mode & 0o077 == 0
    assert state.path.stat().st_mode & 0o077 == 0


def test_of_two_that_place_one_name_the_first_wins_and_stays(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    assert keeping.place(state, a_record(uid="first"))

    assert not keeping.place(state, a_record(uid="second"))

    assert state.attempt("default", "digits").uid() == "first"
    assert list(state.incoming.iterdir()) == []


def test_a_stray_file_under_the_name_is_not_replaced(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    stray = state.attempt("default", "digits").path
    stray.parent.mkdir(parents=True)
    stray.write_text("mine")

    assert not keeping.place(state, a_record())
    assert stray.read_text() == "mine"


def test_a_name_too_long_for_the_file_system_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)

    with pytest.raises(OSError, match=os.strerror(errno.ENAMETOOLONG)):
        keeping.place(state, a_record("x" * 300))
    assert list(state.incoming.iterdir()) == []


def test_a_kept_attempt_is_found_by_name_newest_first(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    for number, uid in enumerate(("old", "new")):
        keeping.place(state, a_record(uid=uid))
        folder = state.attempt("default", "digits")
        keeping.keep(state, folder, a_ref(uid=uid))
        os.utime(state.kept("default", "digits", uid).path, (number, number))

    assert [folder.uid() for folder in state.kept_of("default", "digits")] == ["new", "old"]
    assert list(state.kept_of("default", "another")) == []
    assert [path.name for path in state.all_kept()] == ["old", "new"]


def test_keeping_what_is_gone_already_is_fine(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)

    keeping.keep(state, state.attempt("default", "digits"), a_ref())

    assert state.all_kept() == []


def test_the_oldest_of_too_many_kept_attempts_goes_with_its_supervisors_file(
    tmp_path: Path,
) -> None:
    state = StateFolder(tmp_path)
    for number in range(4):
        uid = f"u-{number}"
        keeping.place(state, a_record(uid=uid))
        write_json(state.supervisor_file(uid), asdict(gone()))
        folder = state.attempt("default", "digits")
        os.utime(folder.path, (number, number))
        keeping.keep(state, folder, a_ref(uid=uid), 2)

    assert [path.name for path in state.all_kept()] == ["u-2", "u-3"]
    assert [state.supervisor_file(f"u-{n}").exists() for n in range(4)] == [
        False,
        False,
        True,
        True,
    ]


def test_a_kept_attempt_that_still_runs_is_not_thrown_away(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    running = identify(os.getpid())
    assert running is not None
    for number, (uid, program) in enumerate(
        [("runs", running), ("ended", gone()), ("last", gone())]
    ):
        keeping.place(state, a_record(uid=uid))
        folder = state.attempt("default", "digits")
        write_json(folder.path / "supervisor.json", asdict(program))
        os.utime(folder.path, (number, number))
        keeping.keep(state, folder, a_ref(uid=uid), 1)

    assert [path.name for path in state.all_kept()] == ["runs", "last"]


def gone() -> Running:
    return Running(pid=2**22 + 1, started_ticks=1, boot_id="none")


@pytest.mark.parametrize(("age_seconds", "is_kept"), [(0, True), (590, True), (610, False)])
def test_only_old_folders_of_a_killed_gateway_are_cleared(
    tmp_path: Path, age_seconds: float, *, is_kept: bool
) -> None:
    state = StateFolder(tmp_path)
    left = state.incoming / "half"
    (left / "logs").mkdir(parents=True)
    then = time.time() - age_seconds
    os.utime(left, (then, then))

    keeping.clear_incoming(state)

    assert left.exists() is is_kept


Place = Callable[[StateFolder, str], object]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "place",
    [
        lambda state, name: state.attempt("default", name),
        lambda state, name: state.attempt(name, "digits"),
        lambda state, name: state.kept("default", "digits", name),
        lambda state, name: state.kept_of(name, "digits"),
        lambda state, name: state.supervisor(name),
    ],
)
def test_no_name_namespace_or_uid_leaves_the_state_folder(
    tmp_path: Path, place: Place, name: str
) -> None:
    with pytest.raises(ClusterRejected) as caught:
        place(StateFolder(tmp_path), name)
    assert caught.value.value == name
    assert caught.value.detail == f"{name!r} cannot be a file name"


def test_a_mark_is_set_once_and_not_where_all_is_gone(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    keeping.place(state, a_record())
    folder = state.attempt("default", "digits")

    assert [folder.mark(folder.stopped) for _ in range(3)] == [True, False, False]
    gone_folder = state.attempt("default", "gone")
    assert not gone_folder.mark(gone_folder.stopped)
    assert not gone_folder.path.exists()


def test_a_folder_tells_no_uid_an_odd_one_and_a_real_one_apart(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    folder = state.attempt("default", "digits")
    assert folder.uid() is None

    folder.path.mkdir(parents=True)
    assert folder.uid() == ""
    write_json(folder.path / "launch.json", {"uid": "u-9"})
    assert folder.uid() == "u-9"
    assert folder.launch() is None


def test_plans_are_of_one_rank_and_one_generation(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    keeping.place(state, a_record())
    folder = state.attempt("default", "digits")

    folder.write_plan(1, 2, {"A": "ä"})

    assert folder.plan(1, 2) == {"A": "ä"}
    assert [folder.plan(*other) for other in ((2, 1), (1, 1), (12, 0))] == [None] * 3


def test_a_document_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    write_json(path, {"old": True})

    with pytest.raises(TypeError):
        write_json(path, {"new": object()})
    assert read_json(path) == {"old": True}
    assert list(tmp_path.iterdir()) == [path], "no half of the new one lies beside it"


words = st.text(max_size=8)
runnings = st.builds(Running, pid=st.integers(1), started_ticks=st.integers(0), boot_id=words)
statuses = st.builds(
    ReplicaStatus,
    pod_set=words,
    index=st.integers(0),
    rank=st.integers(0),
    node=words,
    generation=st.integers(0),
    phase=st.sampled_from(ReplicaPhase),
    running=st.none() | runnings,
    exit_code=st.none() | st.integers(0, 255),
    message=words,
)
gangs = st.builds(
    GangStatus,
    replicas=st.lists(statuses, max_size=3),
    outcome=st.sampled_from([*(each.value for each in ObjectOutcome), ORPHANED, STOPPED]),
    recreations=st.integers(0),
    message=words,
    is_final=st.booleans(),
)
programs = st.builds(
    Program,
    command=st.lists(words, min_size=1, max_size=3).map(tuple),
    environment=st.lists(st.tuples(words, words), max_size=3).map(tuple),
    folder=words,
    restart_policy=words,
)
records = st.builds(
    LaunchRecord,
    uid=words,
    identity=words,
    namespace=words,
    name=words,
    heartbeat_file=words,
    orphan_seconds=st.floats(0, 1e9),
    most_restarts=st.integers(0),
    rendezvous=st.builds(
        Rendezvous,
        has_master=st.booleans(),
        replicas=st.integers(1),
        processes_per_node=words,
        elastic=st.none() | st.dictionaries(words, st.integers()),
    ),
    replicas=st.lists(
        st.builds(
            ReplicaRecord,
            pod_set=words,
            index=st.integers(0),
            rank=st.integers(0),
            node=words,
            program=programs,
        ),
        max_size=2,
    ).map(tuple),
)


def through_json(document: Any) -> Any:
    return json.loads(json.dumps(document))


@settings(max_examples=40)
@given(gangs)
def test_a_status_comes_back_from_its_file_as_it_was(gang: GangStatus) -> None:
    assert GangStatus.from_json(through_json(gang.to_json())) == gang


@settings(max_examples=40)
@given(records)
def test_a_launch_comes_back_from_its_file_as_it_was(record: LaunchRecord) -> None:
    assert LaunchRecord.from_json(through_json(record.to_json())) == record
