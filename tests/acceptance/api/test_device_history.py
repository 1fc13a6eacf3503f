"""Who held a device and when, over REST and SDK."""

import pytest

from gateway.core.vocabulary import JobState
from gateway.errors import NotFound
from tests.acceptance.api.bodies import a_manifest
from tests.acceptance.conftest import Served


def one_after_the_other(served: Served, *names: str) -> int:
    """Let jobs hold the same GPU in turn; gives its number."""
    held = 0
    for name in names:
        job = served.sdk().submit(a_manifest(name, gpu=1))
        served.world.turn()
        device, *_ = served.sdk().devices.list(kind="gpu", free=False)
        held = device.id
        job.cancel()
        served.world.until(job.id, JobState.CANCELLED)
    return held


def test_a_device_tells_all_who_held_it_the_newest_first(served: Served) -> None:
    device = one_after_the_other(served, "first", "second")
    running = served.sdk().submit(a_manifest("third", gpu=1))
    served.world.turn()
    holds = list(served.sdk().devices.history(device))
    assert [hold.holder and hold.holder.job_name for hold in holds] == ["third", "second", "first"]
    latest, *ended = holds
    assert latest.holder is not None
    assert (latest.holder.job_id, latest.attempt, latest.freed_at) == (running.id, 1, None)
    for hold in ended:
        assert hold.freed_at is not None
        assert hold.freed_at >= hold.reserved_at


def test_a_device_that_nobody_held_has_no_history(shared: Served) -> None:
    device, *_ = shared.sdk().devices.list(kind="rdma")
    assert list(shared.sdk().devices.history(device.id)) == []
    with pytest.raises(NotFound, match="device 424242 does not exist"):
        list(shared.sdk().devices.history(424242))
    assert shared.http().get("/devices/abc/history").status_code == 404


def test_history_comes_in_pages(served: Served) -> None:
    device = one_after_the_other(served, "one", "two", "three")
    http, cursor = served.http(), ""
    seen: list[list[str]] = []
    while not seen or cursor:
        page = http.get(f"/devices/{device}/history?limit=2&cursor={cursor}").json()
        seen.append([hold["holder"]["job_name"] for hold in page["items"]])
        cursor = page["next_cursor"]
    assert seen == [["three", "two"], ["one"]]


def test_other_tenants_jobs_are_told_by_their_queue_alone(served: Served) -> None:
    device = one_after_the_other(served, "secret-project")
    told = served.http("ben").get(f"/devices/{device}/history")
    (hold,) = told.json()["items"]
    assert (hold["queue"], hold["holder"], hold["attempt"]) == ("default", None, None)
    assert "secret-project" not in told.text


def test_room_for_pods_is_told_by_size(served: Served) -> None:
    whole = {"gpus": 8, "ideal": 2, "fitting": 2, "aligned": 2}
    assert served.http().get("/fragmentation").json()["items"][-1] == whole
    served.sdk().submit(a_manifest("train", gpu=1))
    served.world.turn()
    sizes = {each.gpus: each for each in served.sdk().nodes.fragmentation().items}
    assert (sizes[8].ideal, sizes[8].fitting) == (1, 1)
    assert (sizes[4].ideal, sizes[4].fitting, sizes[4].aligned) == (3, 3, 3)
    assert served.http().get("/fragmentation?size=8").status_code == 422
