"""`gateway device types`: a list, a drawing, and a check that needs no server."""

import json
from pathlib import Path

import pytest

from gateway.backends.machine_catalogue import machine
from gateway.cli import exits
from gateway.service.device_types import detail_of, get_device_type, list_device_types
from tests.unit.cli.fake_session import Terminal
from tests.unit.sdk.fake_gateway import ok

BOARD = """\
cpu_cores: 64
memory_gib: 512
gpus: [{switch: 0, numa: 0}, {switch: 1, numa: 1}]
nics: [{name: mlx5_0, switch: 0, numa: 0}]
partitions: [{gpus: [0, 1], bandwidth: 40}]
"""


def test_types_are_listed_with_what_is_known_of_them(terminal: Terminal) -> None:
    page = {"items": [kind.model_dump(mode="json") for kind in list_device_types()]}

    ran = terminal("device", "types", answers=(ok(page),))

    assert ran.asked == ["GET /device-types"]
    rows = {line.split()[0]: line.split()[1:] for line in ran.out.splitlines()}
    assert rows["dgx-a100"] == ["8", "8", "4", "4", "8", "-"]
    assert rows["p5"] == ["8", "32", "8", "2", "8", "p5.48xlarge"]
    assert rows["a3-ultra"] == ["8", "8", "?", "?", "0", "a3-ultragpu-8g"]


def test_one_type_is_drawn_or_given_as_data(terminal: Terminal) -> None:
    answer = ok(get_device_type("p4d").model_dump(mode="json"))

    drawn = terminal("device", "types", "p4d", answers=(answer,))
    data = terminal("device", "types", "p4d", "-o", "json", answers=(answer,))
    named = terminal("device", "types", "p4d", "-o", "name", answers=(answer,))

    assert drawn.asked == ["GET /device-types/p4d"]
    assert "├─ switch 0   GPU0(10:1c.0)  GPU1(10:1d.0)  rdmap16s27(10:1b.0)" in drawn.out
    assert json.loads(data.out)["nic_distances"][0] == ["PIX", "NODE", "SYS", "SYS"]
    assert named.out == "p4d\n"


def test_a_site_checks_its_own_file_without_a_server(terminal: Terminal, tmp_path: Path) -> None:
    path = tmp_path / "my-board.yaml"
    path.write_text(BOARD)

    ran = terminal("device", "types", "--check", str(path), "-o", "json")

    assert (ran.code, ran.asked) == (0, [])
    assert "can be used: my-board" in ran.err
    assert json.loads(ran.out)["partitions"] == [{"gpus": [0, 1], "bandwidth": 40}]


def test_a_wrong_file_is_told_with_its_place(terminal: Terminal, tmp_path: Path) -> None:
    path = tmp_path / "my-board.yaml"
    path.write_text(BOARD.replace("nics: [{name", "nics: [{nam"))

    ran = terminal("device", "types", "--check", str(path))

    assert ran.code not in {0, exits.USAGE}
    assert "/nics/0/nam is no known field" in ran.err
    assert "did you mean 'name'?" in ran.err


def test_a_site_folder_counts_in_a_check(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINING_GATEWAY_MACHINES_DIR", str(tmp_path))
    (tmp_path / "first.yaml").write_text(BOARD + "match: {board: x}\n")
    other = tmp_path / "sub"
    other.mkdir()
    (other / "second.yaml").write_text(BOARD + "match: {board: x}\n")

    ran = terminal("device", "types", "--check", str(other / "second.yaml"))

    assert "also fits nodes of machine type 'first'" in ran.err
    monkeypatch.delenv("TRAINING_GATEWAY_MACHINES_DIR")
    terminal("device", "types", "--check", str(other / "second.yaml"))


def test_places_hold_every_fact_of_the_file() -> None:
    gpu, *_ = detail_of(machine("dgx-a100")).devices

    assert (gpu.pci_address, gpu.switch, gpu.switch_path) == ("0000:07:00.0", 0, (0, 4))
    assert (gpu.root, gpu.numa, gpu.rail, gpu.nvlink_group) == (0, 3, 0, 0)
