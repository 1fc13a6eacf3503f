"""The local back end before anything runs: names, strangers, marks, logs and a broken disk."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.backends.base import ForeignObject, Launch, ObjectRef
from gateway.backends.local import LocalBackend
from gateway.backends.local.supervisor import FIRST_PORT, PORTS, Heartbeat, free_port
from gateway.backends.local.supervisor import main as supervise
from gateway.backends.virtual_fleet import virtual_fleet
from gateway.errors import ClusterRejected, ClusterUnreachable
from tests.contract.backends.launches import a_launch, a_manifest

FLEET = virtual_fleet("1xcpu")
LAUNCH = a_launch(a_manifest(1, ["true"]))
NOBODY = ObjectRef(namespace="default", name=LAUNCH.object_name, uid="nobody")


@pytest.fixture
def backend(tmp_path: Path) -> LocalBackend:
    return LocalBackend(tmp_path / "state", FLEET)


def attempt(backend: LocalBackend, launch: Launch = LAUNCH) -> Path:
    return backend._state.attempt(launch.namespace, launch.object_name).path


def write_log(backend: LocalBackend, rank: int, text: str) -> None:
    (attempt(backend) / "logs" / f"{rank}.log").write_text(text)


def test_every_instance_on_one_folder_is_the_same_back_end(
    backend: LocalBackend, tmp_path: Path
) -> None:
    ref = backend.create(LAUNCH)
    again = LocalBackend(tmp_path / "state", FLEET)

    assert again.find(LAUNCH) == again.create(LAUNCH) == ref
    assert list(again.inventory()) == FLEET


@pytest.mark.parametrize("field", ["attempt", "job_id", "spec_digest"])
def test_an_object_of_another_attempt_is_foreign_and_named(
    backend: LocalBackend, field: str
) -> None:
    ref = backend.create(LAUNCH)
    changed: dict[str, Any] = {field: 2 if field == "attempt" else "another"}
    other = replace(LAUNCH, **changed)

    for call in (backend.find, backend.create):
        with pytest.raises(ForeignObject) as caught:
            call(other)
        assert caught.value.value == ref.uid
        assert caught.value.detail == (
            "an object default/digits-ab12-1 exists that is not this attempt's"
        )
        assert caught.value.hint == f"remove or rename {attempt(backend)}, then requeue the job"


def test_a_newer_leader_finds_what_an_older_one_created(backend: LocalBackend) -> None:
    assert backend.find(replace(LAUNCH, epoch=9)) is None
    ref = backend.create(LAUNCH)

    assert backend.find(replace(LAUNCH, epoch=9)) == ref


def test_one_name_in_two_namespaces_is_two_objects(backend: LocalBackend) -> None:
    other = replace(LAUNCH, namespace="team-a")

    assert backend.create(LAUNCH).uid != backend.create(other).uid


def test_a_launch_that_cannot_run_leaves_nothing_behind(backend: LocalBackend) -> None:
    launch = a_launch(a_manifest(1))

    with pytest.raises(ClusterRejected, match="has no command"):
        backend.create(launch)
    assert backend.find(launch) is None
    assert not attempt(backend, launch).exists()


@pytest.mark.parametrize("name", ["unsuspend", "open_gates", "stop"])
def test_nothing_happens_to_an_object_of_another_uid(backend: LocalBackend, name: str) -> None:
    backend.create(LAUNCH)
    before = sorted(path.name for path in attempt(backend).iterdir())

    getattr(backend, name)(LAUNCH, NOBODY)
    backend.delete(NOBODY)

    assert sorted(path.name for path in attempt(backend).iterdir()) == before
    assert not backend.observe(LAUNCH, NOBODY).exists


def test_an_object_that_was_stopped_first_is_never_started(backend: LocalBackend) -> None:
    ref = backend.create(LAUNCH)
    backend.stop(LAUNCH, ref)
    backend.unsuspend(LAUNCH, ref)

    assert not (attempt(backend) / "started").exists()
    assert not backend.open_gates(LAUNCH, ref)
    seen = backend.observe(LAUNCH, ref)
    assert (seen.exists, seen.is_suspended, seen.replicas) == (True, True, ())


def test_a_deleted_object_is_gone_and_its_name_free(backend: LocalBackend) -> None:
    first = backend.create(LAUNCH)
    backend.delete(first)
    backend.delete(first)

    assert backend.find(LAUNCH) is None
    assert not backend.observe(LAUNCH, first).exists
    assert backend.observe(LAUNCH, first).are_pods_gone
    assert backend.create(LAUNCH).uid != first.uid


@pytest.mark.parametrize(
    ("tail", "lines"),
    [(None, ["one", "two", "three"]), (2, ["two", "three"]), (0, []), (9, ["one", "two", "three"])],
)
def test_lines_are_read_by_rank_and_tail_before_and_after_deletion(
    backend: LocalBackend, tail: int | None, lines: list[str]
) -> None:
    ref = backend.create(LAUNCH)
    write_log(backend, 1, "one\ntwo\nthree\n")
    assert list(backend.logs(LAUNCH, 1, follow=False, tail=tail)) == lines
    backend.delete(ref)

    assert list(backend.logs(LAUNCH, 1, follow=False, tail=tail)) == lines
    assert list(backend.logs(LAUNCH, 1, follow=True, tail=tail)) == lines
    assert list(backend.logs(LAUNCH, 0, follow=False, tail=tail)) == []


def test_the_living_attempts_lines_are_read_before_those_of_a_kept_one(
    backend: LocalBackend,
) -> None:
    ref = backend.create(LAUNCH)
    write_log(backend, 0, "old\n")
    backend.delete(ref)
    backend.create(LAUNCH)
    write_log(backend, 0, "new\n")

    assert list(backend.logs(LAUNCH, 0, follow=False, tail=None)) == ["new"]


def test_lines_of_a_stranger_under_our_name_are_not_shown(backend: LocalBackend) -> None:
    backend.create(LAUNCH)
    write_log(backend, 0, "secret\n")

    other = replace(LAUNCH, job_id="another")
    assert list(backend.logs(other, 0, follow=False, tail=None)) == []
    assert list(backend.logs(other, 0, follow=True, tail=None)) == []


Call = Callable[[LocalBackend], object]


@pytest.mark.parametrize(
    "call",
    [
        lambda backend: backend.heartbeat(),
        lambda backend: backend.inventory(),
        lambda backend: backend.create(LAUNCH),
        lambda backend: backend.find(LAUNCH),
        lambda backend: backend.unsuspend(LAUNCH, NOBODY),
        lambda backend: backend.open_gates(LAUNCH, NOBODY),
        lambda backend: backend.observe(LAUNCH, NOBODY),
        lambda backend: backend.stop(LAUNCH, NOBODY),
        lambda backend: backend.delete(NOBODY),
        lambda backend: backend.logs(LAUNCH, 0, follow=False, tail=None),
        lambda backend: backend.hold(LAUNCH, NOBODY),
    ],
)
def test_a_state_folder_that_went_away_is_an_outage_for_every_call(
    backend: LocalBackend, tmp_path: Path, call: Call
) -> None:
    (tmp_path / "state").rename(tmp_path / "moved")

    with pytest.raises(ClusterUnreachable) as caught:
        call(backend)
    assert caught.value.detail.startswith("the state folder cannot be used: [Errno 2]")
    assert caught.value.hint == "look at the disk and try again"
    assert not backend.is_reachable()


def test_a_heartbeat_counts_from_the_last_change_by_its_own_clock(tmp_path: Path) -> None:
    path = tmp_path / "heartbeat"
    path.touch()
    heartbeat = Heartbeat(path, 100.0)

    assert heartbeat.silent_seconds(130.0) == 30.0
    os.utime(path, (1, 1))  # the wall clock was set back; the file changed all the same
    assert heartbeat.silent_seconds(131.0) == 0.0
    assert heartbeat.silent_seconds(191.5) == 60.5


def test_a_heartbeat_file_that_is_missing_or_goes_is_silence(tmp_path: Path) -> None:
    path = tmp_path / "heartbeat"
    heartbeat = Heartbeat(path, 0.0)
    assert heartbeat.silent_seconds(5.0) == 5.0

    path.touch()
    assert heartbeat.silent_seconds(6.0) == 0.0
    path.unlink()
    assert heartbeat.silent_seconds(7.0) == 0.0, "a change, though the last"
    assert heartbeat.silent_seconds(70.0) == 63.0


@pytest.mark.needs_loopback
@pytest.mark.parametrize("uid", ["00000000-0000", "ffffffff-ffff-4fff", "12345678" * 4])
def test_a_port_is_free_and_below_the_ephemeral_range(uid: str) -> None:
    port = free_port(uid)

    assert FIRST_PORT <= port < FIRST_PORT + PORTS
    assert free_port(uid) in range(FIRST_PORT, FIRST_PORT + PORTS)


@pytest.mark.parametrize("marks", [[], ["stopped"]])
def test_a_supervisor_of_what_was_not_unsuspended_ends_at_once(
    backend: LocalBackend, monkeypatch: pytest.MonkeyPatch, marks: list[str]
) -> None:
    backend.create(LAUNCH)
    folder = attempt(backend)
    for mark in marks:
        (folder / mark).write_text("{}")
    monkeypatch.chdir(Path.cwd())  # a supervisor changes its folder: come back afterwards

    assert supervise([str(folder)]) == 0
    assert not (folder / "supervisor.json").exists()


def test_a_supervisor_of_an_attempt_that_had_one_ends_at_once(
    backend: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.create(LAUNCH)
    folder = attempt(backend)
    (folder / "started").write_text("{}")
    had = '{"pid": 1, "started_ticks": 1, "boot_id": "earlier"}'
    (folder / "supervisor.json").write_text(had)
    monkeypatch.chdir(Path.cwd())

    assert supervise([str(folder)]) == 0
    assert (folder / "supervisor.json").read_text() == had
