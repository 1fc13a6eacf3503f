"""Orders and shares by REST, SDK and the command line, against a real server."""

import json
from pathlib import Path

import yaml

from gateway.core.vocabulary import JobState
from tests.acceptance.api.bodies import a_manifest
from tests.acceptance.cli.conftest import Command
from tests.acceptance.conftest import Served


def fill(served: Served) -> None:
    """Let one gang take the whole fleet."""
    served.world.until(served.world.submit(name="first", workers=1), JobState.RUNNING)


def test_a_queue_shows_who_comes_when(served: Served, gateway: Command) -> None:
    fill(served)
    for name, priority in (("low", 1), ("high", 7)):
        served.world.submit(name=name, priority=priority)
    served.world.decide()
    shown = gateway("queue", "order", "default")
    assert shown.code == 0, shown.err
    lines = shown.out.splitlines()
    assert lines[0].split()[:6] == ["POS", "ID", "NAME", "USER", "GPUS", "PRIO"]
    assert [line.split()[2] for line in lines[1:]] == ["high", "low"]
    assert "GangDoesNotFit" in lines[1]
    assert shown.err.startswith("2 waiting in queue default; order priority, best_effort; list ")


def test_wide_and_data_tell_everything(served: Served, gateway: Command) -> None:
    fill(served)
    served.world.submit(name="later", not_before_at="2030-01-31T18:00:00Z")
    wide = gateway("queue", "order", "default", "-o", "wide").out
    assert "not before 2030-01-31T18:00:00+00:00" in wide
    page = json.loads(gateway("queue", "order", "default", "-o", "json").out)
    assert (page["total"], page["policy"], page["items"][0]["name"]) == (1, "priority", "later")
    assert page["items"][0]["reason"] == "NotBefore"
    ids = gateway("queue", "order", "default", "-o", "name").out
    assert ids.strip() == page["items"][0]["job_id"]
    assert gateway("queue", "order", "nowhere").code == 4


def test_a_list_has_a_number_that_changes_with_it(served: Served) -> None:
    fill(served)
    http = served.http()
    served.world.submit(name="one")
    first = http.get("/queues/default/order")
    assert first.headers["ETag"] == f'"{first.json()["list_serial"]}"'
    assert http.get("/queues/default/order").headers["ETag"] == first.headers["ETag"]
    served.world.submit(name="two")
    assert http.get("/queues/default/order").headers["ETag"] != first.headers["ETag"]


def test_the_sdk_walks_through_all_pages(served: Served) -> None:
    fill(served)
    for number in range(4):
        served.world.submit(name=f"job-{number}")
    client = served.sdk()
    assert [each.position for each in client.queues.ranked("default")] == [1, 2, 3, 4]
    page = client.queues.order("default", limit=2)
    assert (len(page.items), bool(page.next_cursor)) == (2, True)


def test_a_dry_run_shows_where_a_job_would_start(
    served: Served, gateway: Command, tmp_path: Path
) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(yaml.safe_dump(a_manifest(gpu=2)))
    ran = gateway("submit", str(path), "--dry-run")
    assert ran.code == 0, ran.err
    assert "would start now: 1 pod on dgx-h100-0" in ran.out
    assert "rank 0    Master 0  dgx-h100-0  " in ran.out
    assert "mlx5_0" in ran.out
    assert "default/cpu=4 default/gpu=2 default/memory=16Gi" in ran.out
    fill(served)
    waits = gateway("submit", str(path), "--dry-run").out
    assert "would wait in queue default: 2 of 2 nodes: fewer than 2 free GPUs" in waits
    assert "GangDoesNotFit" in waits
    told = served.sdk().plan(path)
    assert (told.starts_now, told.position, bool(told.unblock)) == (False, 1, True)


def test_shares_are_drawn_for_one_tree_or_all(served: Served, gateway: Command) -> None:
    root = {"caller": "root"}
    assert gateway("cohort", "create", "lab", **root).code == 0
    for name, weight in (("research", "1"), ("product", "3")):
        quota = ("--cohort", "lab", "--weight", weight, "--quota", "default/gpu=8")
        assert gateway("queue", "create", name, *quota, **root).code == 0
    served.world.until(
        served.world.submit(name="wide", queue="research", gpu=6, workers=1), JobState.RUNNING
    )
    drawn = gateway("share", "research").out
    assert "  research (queue)" in drawn
    assert "12/8 +4, entitled 4" in drawn
    assert "share 0.25 by gpu" in drawn
    assert "default (queue)" not in drawn
    assert "default (queue)" in gateway("share").out
    assert gateway("share", "nowhere").code == 4
    told = json.loads(gateway("share", "product", "-o", "json").out)
    assert [node["name"] for node in told["nodes"]] == ["lab", "product", "research"]
    assert told["nodes"][1]["rows"][0]["entitlement"] == 12


def test_an_admin_puts_a_job_first(served: Served, gateway: Command) -> None:
    fill(served)
    for name, priority in (("low", 1), ("high", 7)):
        served.world.submit(name=name, priority=priority)
    assert gateway("top", "low").code == 5
    page = json.loads(gateway("queue", "order", "default", "-o", "json").out)
    number = ("--list", str(page["list_serial"]))
    done = gateway("top", "low", *number, caller="root")
    assert (done.code, done.err) == (0, "low: priority 7, first of default\n")
    stale = gateway("top", "high", *number, caller="root")
    assert (stale.code, "has changed" in stale.err) == (3, True)
    http = served.http("root")
    order = http.get("/queues/default/order")
    high = order.json()["items"][1]["job_id"]
    refused = http.post(f"/jobs/{high}:top", headers={"If-Match": '"1"'})
    assert (refused.status_code, refused.json()["code"]) == (412, "stale_version")
    etag = {"If-Match": order.headers["ETag"]}
    assert http.post(f"/jobs/{high}:top", headers=etag).json()["priority"] == 8
