"""The map's rails and figures, and who held a device, as a person reads them."""

from datetime import UTC, datetime

import pytest

from gateway.cli.fleet import map_lines, room_lines
from gateway.core.vocabulary import DeviceKind
from gateway.schemas.views import DeviceView, RoomForSize
from tests.unit.cli.fake_session import Terminal
from tests.unit.cli.test_words import a_device
from tests.unit.sdk.fake_gateway import ok

HELD = {
    "queue": "research",
    "holder": {
        "job_id": "0193",
        "job_name": "train",
        "namespace": "lab",
        "pod_set": "Worker",
        "index": 2,
    },
    "attempt": 3,
    "reserved_at": "2026-01-01T00:00:00Z",
    "freed_at": "2026-01-01T02:30:00Z",
    "end_reason": "Succeeded",
}
HIDDEN = {"queue": "others", "reserved_at": "2025-12-31T00:00:00Z", "freed_at": None}


def nics(*rails: int, node: str = "node-1") -> list[DeviceView]:
    return [
        a_device(ordinal, DeviceKind.RDMA, rail=rail, node=node)
        for ordinal, rail in enumerate(rails)
    ]


@pytest.mark.parametrize(
    ("rails", "others", "shown"),
    [
        ((0, 1, 2), (0, 1, 2), "rail              012"),
        ((1, 0), (1,), "rail              10"),
        ((0, 1), (1, 0), None),
        ((-1, -1), (), None),
        ((0, 10), (), None),
        ((), (), None),
    ],
)
def test_rails_head_their_columns_where_one_line_is_true_of_every_node(
    rails: tuple[int, ...], others: tuple[int, ...], shown: str | None
) -> None:
    cells = [*nics(*rails), *nics(*others, node="node-2")]
    lines = [line.plain for line in map_lines(cells)]
    told = [line.rstrip() for line in lines if line.startswith("rail")]
    assert told == ([] if shown is None else [shown])


def test_room_is_told_for_each_size_that_the_free_gpus_add_up_to() -> None:
    sizes = [
        RoomForSize(gpus=1, ideal=9, fitting=9, aligned=4),
        RoomForSize(gpus=8, ideal=1, fitting=0, aligned=0),
        RoomForSize(gpus=16, ideal=0, fitting=0, aligned=0),
    ]
    assert room_lines(sizes) == [
        "room for 9 of 9 pods of 1 GPU, 4 with a NIC each under one switch",
        "room for 0 of 1 pods of 8 GPUs",
    ]


def test_a_device_is_told_with_all_who_held_it(terminal: Terminal) -> None:
    page = ok({"next_cursor": "", "items": [HELD, HIDDEN]})
    ran = terminal("device", "history", "7", answers=(page,))
    header, mine, theirs = ran.out.splitlines()
    assert header.split() == ["RESERVED", "FREED", "FOR", "QUEUE", "JOB", "POD", "ATTEMPT", "END"]
    assert mine.split()[:5] == ["2026-01-01", "00:00:00", "2026-01-01", "02:30:00", "2h"]
    assert mine.split()[5:] == ["research", "lab/train", "Worker", "2", "3", "Succeeded"]
    assert "still held" in theirs
    assert theirs.split()[-4:] == ["-", "-", "-", "-"], "nothing of another tenant's job"
    assert ran.asked == ["GET /devices/7/history?limit=500"]


def test_no_more_is_shown_than_was_asked_for(terminal: Terminal) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC).isoformat()
    items = [{"queue": f"q{n}", "reserved_at": moment, "freed_at": moment} for n in range(5)]
    page = ok({"next_cursor": "", "items": items})
    ran = terminal("device", "history", "7", "--limit", "2", "-o", "name", answers=(page,))
    assert ran.out.split() == ["q0", "q1"]
    assert terminal("device", "history", "7", "--limit", "0").code == 2
