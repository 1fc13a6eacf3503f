"""The commands at work, against a real server."""

import json
from pathlib import Path

import pytest
import yaml

from tests.acceptance.cli.conftest import Command
from tests.acceptance.conftest import Served

JOB = """
name: NAME
namespace: team-a
image: example/train:1
command: [train]
resources: {cpu: 1, memory: 1Gi, gpu: 8, rdma: 8}
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """Give a short-form job that takes a whole node."""
    path = tmp_path / "train.yaml"
    path.write_text(JOB.replace("NAME", "train"))
    return path


def submit(gateway: Command, manifest: Path, name: str, *more: str) -> str:
    ran = gateway("submit", str(manifest), "--name", name, *more)
    assert ran.code == 0, ran.err
    return ran.out.strip()


def test_a_job_is_found_by_id_end_or_start_of_id_and_name(gateway: Command, manifest: Path) -> None:
    job = submit(gateway, manifest, "train")
    for word in (job, job[-8:], job[:18], "train"):
        ran = gateway("show", word, "-o", "json")
        assert ran.code == 0, ran.err
        assert json.loads(ran.out)["id"] == job
    assert gateway("show", "nobody").code == 4


def test_the_same_key_submits_once(gateway: Command, manifest: Path) -> None:
    first = submit(gateway, manifest, "train", "--key", "k")
    assert submit(gateway, manifest, "train", "--key", "k") == first
    other = gateway("submit", str(manifest), "--name", "other", "--key", "k")
    assert other.code == 3
    assert "use a new key" in other.err


def test_an_ended_job_is_submitted_again_from_itself(gateway: Command, manifest: Path) -> None:
    first = submit(gateway, manifest, "train", "--queue", "default")
    taken = gateway("submit", "--from", "train")
    assert (taken.code, "live job named" in taken.err) == (3, True)
    assert gateway("cancel", "train").code == 0
    again = gateway("submit", "--from", first)
    assert again.code == 0, again.err
    specs = [
        json.loads(gateway("show", job, "-o", "json").out)["spec"]
        for job in (first, again.out.strip())
    ]
    assert specs[0] == specs[1]


def test_a_dry_run_stores_nothing(gateway: Command, manifest: Path) -> None:
    ran = gateway("submit", str(manifest), "--dry-run")
    assert ran.code == 0
    assert "nothing (dry run)" in ran.out
    assert gateway("ls", "-o", "name").out == ""


def test_the_third_of_three_whole_nodes_says_why_it_waits(
    served: Served, gateway: Command, manifest: Path
) -> None:
    for name in ("one", "two", "three"):
        submit(gateway, manifest, name)
    for _ in range(3):
        served.world.turn()
    ran = gateway("explain", "three")
    assert "GangDoesNotFit" in ran.out
    assert "2 of 2 nodes: fewer than 8 free GPUs" in ran.out
    assert "position   1 in its queue" in ran.out
    drawn = gateway("device", "map").out
    assert "AAAAAAAA" in drawn
    assert "BBBBBBBB" in drawn


def test_the_verbs_change_what_they_say(gateway: Command, manifest: Path) -> None:
    submit(gateway, manifest, "train")
    assert "train: held" in gateway("hold", "train").err
    again = gateway("hold", "train")
    assert again.code == 3
    assert "release" in again.err
    assert "train: pending" in gateway("release", "train").err
    assert "priority 7" in gateway("reprioritise", "train", "7").err
    assert "would cancel" in gateway("cancel", "train", "--dry-run").err
    assert "train: cancelled" in gateway("cancel", "train").err
    refused = gateway("requeue", "train")
    assert refused.code == 3
    assert "submit" in refused.err
    kinds = [event["kind"] for event in json.loads(gateway("events", "train", "-o", "json").out)]
    assert kinds == ["submitted", "held", "released", "reprioritised", "cancelled"]


def test_wait_and_logs_follow_a_job_to_its_end(
    served: Served, gateway: Command, manifest: Path
) -> None:
    submit(gateway, manifest, "train")
    assert gateway("wait", "train", "--timeout", "0.2").code == 124
    with served.moving():
        ran = gateway("wait", "train", "--timeout", "60")
    assert (ran.code, "train: succeeded" in ran.err) == (0, True)


def test_another_tenant_sees_nothing(gateway: Command, manifest: Path) -> None:
    job = submit(gateway, manifest, "train")
    assert gateway("show", job, caller="ben").code == 4
    assert gateway("ls", "-o", "name", caller="ben").out == ""
    assert gateway("ls", caller="nobody").code == 5


def test_definitions_go_around_by_export_and_apply(gateway: Command, tmp_path: Path) -> None:
    admin = {"caller": "root"}
    made = gateway("cohort", "create", "lab", "--quota", "default/gpu=16", **admin)
    assert made.code == 0, made.err
    queue = ("queue", "create", "research", "--cohort", "lab", "--quota", "default/gpu=8,borrow=4")
    assert gateway(*queue, **admin).code == 0
    exported = gateway("export", **admin).out
    file = tmp_path / "config.yaml"
    file.write_text(exported)
    assert gateway("apply", "-f", str(file), **admin).err == "nothing to change\n"
    config = yaml.safe_load(exported)
    config["queues"][-1]["weight"] = 3
    file.write_text(yaml.safe_dump(config))
    dry = gateway("apply", "-f", str(file), "--dry-run", **admin)
    assert "would" in dry.err
    assert gateway("apply", "-f", str(file), **admin).code == 0
    shown = json.loads(gateway("queue", "show", "research", "-o", "json", **admin).out)
    assert shown["weight"] == 3
    assert "default/gpu=8,borrow=4" in gateway("queue", "ls", **admin).out
    assert gateway("queue", "create", "mine").code == 5


def test_a_queue_pauses_and_resumes_and_a_node_is_cordoned(gateway: Command) -> None:
    admin = {"caller": "root"}
    assert "paused" in gateway("queue", "pause", "default", **admin).err
    assert "open" in gateway("queue", "resume", "default", **admin).err
    node = gateway("node", "ls", "-o", "name").out.split()[0]
    assert "cordoned" in gateway("node", "cordon", node, "--reason", "broken fan", **admin).err
    assert "healthy" in gateway("node", "uncordon", node, **admin).err


def test_an_unreachable_gateway_has_its_own_exit_code(gateway: Command) -> None:
    ran = gateway("--url", "http://127.0.0.1:9", "--timeout", "1", "ls")
    assert ran.code == 6
    assert "gateway dev" in ran.err or "127.0.0.1:9" in ran.err
