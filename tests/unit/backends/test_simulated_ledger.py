"""The file of the virtual cluster: old or new, never half, and never ahead of the disk."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.backends.base import ReplicaPhase
from gateway.backends.simulated import ManualClock, SimulatedBackend
from gateway.backends.simulated.ledger import Ledger
from gateway.backends.virtual_fleet import virtual_fleet
from gateway.errors import ClusterUnreachable
from tests.contract.backends.launches import a_launch, a_manifest

FLEET = virtual_fleet("1xdgx-h100")
LAUNCH = a_launch(a_manifest(1), nodes=FLEET)
CLOCK = ManualClock()


def a_backend(file: Path) -> SimulatedBackend:
    return SimulatedBackend(FLEET, file, CLOCK)


def fill_disk(file: Path) -> Path:
    """Let every write fail, as on a full disk: the name of the state is a folder now."""
    aside = file.with_name("aside.json")
    if file.exists():
        file.rename(aside)
    (file / "in the way").mkdir(parents=True)
    return aside


def mend_disk(file: Path, aside: Path) -> None:
    (file / "in the way").rmdir()
    file.rmdir()
    if aside.exists():
        aside.rename(file)


def change_half_way(ledger: Ledger) -> None:
    with ledger.changing() as cluster:
        cluster.created = 99
        raise KeyError("half-way")


def test_a_change_that_raised_half_way_is_not_seen(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "cluster.json")
    with ledger.changing() as cluster:
        cluster.created = 1

    with pytest.raises(KeyError):
        change_half_way(ledger)

    with ledger.reading() as cluster:
        assert cluster.created == 1


def test_a_first_change_that_raised_leaves_an_empty_cluster(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "cluster.json")

    with pytest.raises(KeyError):
        change_half_way(ledger)

    with ledger.reading() as cluster:
        assert cluster.created == 0
    assert not (tmp_path / "cluster.json").exists()


def test_a_create_that_the_disk_refused_did_not_happen(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    backend = a_backend(file)
    aside = fill_disk(file)

    with pytest.raises(ClusterUnreachable) as caught:
        backend.create(LAUNCH)
    assert caught.value.detail.startswith(f"the state file {file} cannot be used: ")
    assert caught.value.hint == "look at the disk and try again"

    mend_disk(file, aside)
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.lock"], "nothing half-written"
    assert backend.find(LAUNCH) is None
    assert backend.create(LAUNCH).uid == "virtual-1"


def test_a_stop_that_the_disk_refused_did_not_happen(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    backend = a_backend(file)
    ref = backend.create(LAUNCH)
    backend.unsuspend(LAUNCH, ref)
    aside = fill_disk(file)
    with pytest.raises(ClusterUnreachable):
        backend.stop(LAUNCH, ref)
    mend_disk(file, aside)

    assert {replica.phase for replica in backend.observe(LAUNCH, ref).replicas} == {
        ReplicaPhase.GATED
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "JSONDecodeError"),
        ("{", "JSONDecodeError"),
        ("[]", "TypeError"),
        ("null", "TypeError"),
        ("{}", "KeyError: 'objects'"),
        ('{"objects": {}, "leaving": {}, "node_health": {}}', "KeyError: 'created'"),
        (
            '{"objects": {"a/b": {"later": 1}}, "leaving": {}, "node_health": {}, "created": 1}',
            "KeyError: 'script'",
        ),
        ('{"objects": 3, "leaving": {}, "node_health": {}, "created": 1}', "AttributeError"),
        ("\xff", "UnicodeDecodeError"),
    ],
)
def test_a_file_of_another_release_is_refused_and_left_alone(
    tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(text, encoding="latin-1")

    backend = a_backend(file)
    for call in (backend.find, backend.create):
        with pytest.raises(ClusterUnreachable) as caught:
            call(LAUNCH)
        assert caught.value.detail.startswith(
            f"the state file {file} is not this release's: {words}"
        )
        assert caught.value.hint == "move it away to begin with an empty virtual cluster"
    assert file.read_text(encoding="latin-1") == text


def test_a_key_that_a_newer_release_added_is_not_silently_lost(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    a_backend(file).create(LAUNCH)
    document: dict[str, Any] = json.loads(file.read_text())
    next(iter(document["objects"].values()))["added_later"] = True
    file.write_text(json.dumps(document))

    with pytest.raises(ClusterUnreachable, match="added_later"):
        a_backend(file).find(LAUNCH)


def test_a_file_that_was_moved_away_begins_an_empty_cluster(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    backend = a_backend(file)
    backend.create(LAUNCH)
    file.unlink()

    assert backend.find(LAUNCH) is None


def test_two_back_ends_on_one_file_never_give_one_uid_twice(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    backends = [a_backend(file), a_backend(file)]
    launches = [a_launch(a_manifest(1), name=f"job-{number}") for number in range(6)]

    uids = [backends[n % 2].create(launch).uid for n, launch in enumerate(launches)]

    assert len(set(uids)) == 6
    assert all(backend.find(launch) for backend in backends for launch in launches)


@pytest.mark.parametrize(
    "look",
    [
        lambda backend, ref: backend.observe(LAUNCH, ref),
        lambda backend, _: backend.find(LAUNCH),
        lambda backend, _: backend.inventory(),
        lambda backend, _: list(backend.logs(LAUNCH, 0, follow=True, tail=None)),
    ],
)
def test_a_look_writes_nothing(tmp_path: Path, look: Callable[..., object]) -> None:
    file = tmp_path / "cluster.json"
    backend = a_backend(file)
    ref = backend.create(LAUNCH)
    backend.unsuspend(LAUNCH, ref)
    backend.open_gates(LAUNCH, ref)
    CLOCK.advance(1000)
    before = (file.read_bytes(), file.stat().st_ino)

    look(backend, ref)

    assert (file.read_bytes(), file.stat().st_ino) == before


def test_without_a_file_two_back_ends_share_nothing() -> None:
    first, second = SimulatedBackend(FLEET), SimulatedBackend(FLEET)
    first.create(LAUNCH)

    assert second.find(LAUNCH) is None


def test_the_folder_of_the_file_is_made(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "down" / "cluster.json"

    assert a_backend(file).create(LAUNCH).uid == "virtual-1"
    assert {path.name for path in file.parent.iterdir()} == {"cluster.json", "cluster.lock"}
