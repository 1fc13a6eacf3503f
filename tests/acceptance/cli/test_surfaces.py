"""One manifest is one job, whichever way it comes; one mistake is one error."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.db.engine import open_database
from gateway.errors import NeverFits
from gateway.schemas.definitions import QueueSpec
from gateway.sdk import Client
from tests.acceptance.cli.conftest import Command
from tests.acceptance.conftest import Served, serving
from tests.manifests import BadManifest, GoodManifest, bad_manifests, good_manifests
from tests.service_world import a_world

SAFE = [
    manifest
    for manifest in good_manifests()
    if not manifest.is_unsafe and not manifest.is_kueue and len(manifest.jobs) == 1
]
QUEUES = ("research", "team-b-gpu")
"""Queues that some of the manifests name."""


@pytest.fixture(scope="module")
def served(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Give one server to all tests of this file; each leaves it as it was."""
    path = tmp_path_factory.mktemp("surfaces") / "gateway.db"
    shutil.copy(sqlite_template, path)
    database = open_database(f"sqlite:///{path}")
    with serving(a_world(database)) as running:
        for queue in QUEUES:
            running.sdk("root").queues.create(QueueSpec(name=queue))
        yield running
    database.close()


def spec_of(client: Client, job_id: str) -> dict[str, Any]:
    """Read what was stored, and make the name free again."""
    handle = client.jobs.get(job_id)
    spec = handle.detail().spec
    handle.cancel()
    return spec


@pytest.mark.parametrize("manifest", SAFE, ids=lambda manifest: manifest.name)
def test_a_manifest_is_the_same_job_by_command_line_sdk_and_rest(
    manifest: GoodManifest, served: Served, gateway: Command
) -> None:
    client = served.sdk()
    try:
        by_sdk = spec_of(client, client.submit(manifest.path, namespace="team-a", hold=True).id)
    except NeverFits as error:
        check_same_refusal(manifest, served, gateway, error)
        return
    ran = gateway("submit", str(manifest.path), "-n", "team-a", "--hold")
    assert ran.code == 0, ran.err
    by_command = spec_of(client, ran.out.strip())
    answer = post(served, manifest)
    assert answer.status_code == 201, answer.text
    by_rest = spec_of(client, answer.json()["id"])
    assert by_sdk == by_command == by_rest


def post(served: Served, manifest: GoodManifest) -> httpx2.Response:
    return served.http().post(
        "/jobs",
        content=manifest.path.read_bytes(),
        headers={"Content-Type": "application/yaml"},
        params={"namespace": "team-a", "hold": "true"},
    )


def check_same_refusal(
    manifest: GoodManifest, served: Served, gateway: Command, error: NeverFits
) -> None:
    """A gang larger than the fleet is refused alike by all three."""
    ran = gateway("submit", str(manifest.path), "-n", "team-a", "--hold")
    assert ran.code == 3
    assert error.detail in ran.err
    answer = post(served, manifest)
    assert (answer.status_code, answer.json()["code"]) == (422, "never_fits")
    assert answer.json()["detail"] == error.detail


def test_most_manifests_are_compared() -> None:
    assert len(SAFE) >= 20


@pytest.mark.parametrize("manifest", bad_manifests(), ids=lambda manifest: manifest.name)
def test_a_mistake_is_told_with_place_and_next_step_on_the_command_line(
    manifest: BadManifest, served: Served, gateway: Command
) -> None:
    ran = gateway("submit", str(manifest.path), "-n", "team-a")
    assert ran.code == 3, ran.err
    assert ran.out == ""
    if manifest.pointer:
        assert manifest.pointer in ran.err
    assert manifest.hint in ran.err
    assert list(served.sdk().jobs.list(state="pending,held")) == []


def test_a_path_that_does_not_exist_is_refused_by_name(gateway: Command) -> None:
    ran = gateway("submit", "no-such-file.yaml")
    assert ran.code != 0
    assert "no-such-file.yaml" in ran.err


def test_standard_input_and_several_documents_are_read(
    gateway: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = "name: NAME\nnamespace: team-a\nimage: example/train:1\ncommand: [train]\n"
    both = tmp_path / "both.yaml"
    both.write_text(short.replace("NAME", "one") + "---\n" + short.replace("NAME", "two"))
    ran = gateway("submit", str(both), "-o", "json")
    assert ran.code == 0, ran.err
    assert [job["name"] for job in json.loads(ran.out)] == ["one", "two"]
    copy = tmp_path / "copy.yaml"
    shutil.copy(both, copy)
    again = gateway("submit", str(copy))
    assert again.code == 3
    assert "live job named 'one'" in again.err
    assert gateway("cancel", "one", "two").code == 0
