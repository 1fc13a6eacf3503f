"""Nodes and devices over REST and SDK: who holds what, and whose business that is."""

import pytest

from gateway.errors import NotFound
from tests.acceptance.api.bodies import a_manifest
from tests.acceptance.conftest import Served


def test_nodes_and_devices_are_listed_in_pages(shared: Served) -> None:
    http = shared.http()
    nodes = http.get("/nodes").json()["items"]
    assert [node["name"] for node in nodes] == ["dgx-h100-0", "dgx-h100-1"]
    assert nodes[0]["gpus_free"] == 8
    assert len(list(shared.sdk().devices.list())) == 32
    seen, cursor = [], ""
    while True:
        page = http.get("/devices", params={"limit": 5, "cursor": cursor}).json()
        seen += [device["id"] for device in page["items"]]
        cursor = page["next_cursor"]
        if not cursor:
            break
    assert len(seen) == len(set(seen)) == 32


def test_devices_are_filtered_and_found_by_number(shared: Served) -> None:
    client = shared.sdk()
    gpus = list(client.devices.list(node="dgx-h100-1", kind="gpu", free=True))
    assert [device.ordinal for device in gpus] == list(range(8))
    assert client.devices.get(gpus[0].id) == gpus[0]
    assert list(client.devices.list(free=False)) == []
    assert shared.http().get("/devices", params={"kind": "tpu"}).status_code == 422


@pytest.mark.parametrize("device_id", ["0", "999999", "abc", "-1", "1.0", "9" * 30])
def test_an_unknown_device_is_not_found(shared: Served, device_id: str) -> None:
    assert shared.http().get(f"/devices/{device_id}").status_code == 404


def test_a_holder_is_named_to_its_own_tenant_only(served: Served) -> None:
    job = served.sdk().submit(a_manifest("secret-project", gpu=1))
    served.world.turn()
    held = list(served.sdk().devices.list(free=False))
    assert [device.kind for device in held] == ["gpu", "rdma"]
    assert all(device.holder and device.holder.job_id == job.id for device in held)

    theirs = served.http("ben").get("/devices", params={"free": "false"})
    assert len(theirs.json()["items"]) == 2
    assert "secret-project" not in theirs.text
    assert job.id not in theirs.text


def test_a_cordoned_node_takes_no_more_jobs(served: Served) -> None:
    root = served.sdk("root")
    for node in root.nodes.list():
        assert root.nodes.cordon(node.name, "firmware").health == "cordoned"
    job = served.sdk().submit(a_manifest(gpu=1))
    served.world.turn()
    assert job.refresh().reason == "NodesUnavailable"
    assert root.nodes.uncordon("dgx-h100-0").health == "healthy"
    served.world.turn()
    assert job.refresh().state == "launching"
    assert {place.node for place in job.assignments()} == {"dgx-h100-0"}
    with pytest.raises(NotFound):
        root.nodes.get("unknown")
