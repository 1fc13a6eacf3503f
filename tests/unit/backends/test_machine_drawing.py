"""Machines drawn for people: eighty columns, every device, and no fact that nobody gave."""

import pytest

from gateway.backends.machine_catalogue import machine, machine_names
from gateway.backends.machine_drawing import WIDTH, count_of, drawing


@pytest.mark.parametrize("name", machine_names())
def test_every_machine_fits_eighty_columns_and_shows_each_device(name: str) -> None:
    kind = machine(name)
    lines = drawing(kind)
    text = "\n".join(lines)

    assert max(map(len, lines)) <= WIDTH
    assert all(line == line.rstrip() for line in lines)
    for gpu in kind.topology.gpus:
        assert f" GPU{gpu.ordinal}" in text
    for nic in kind.devices[len(kind.topology.gpus) :]:
        assert f"NIC{nic.ordinal}={nic.name}" in text


def test_a_machine_is_drawn_by_numa_node_and_switch() -> None:
    lines = drawing(machine("dgx-a100"))

    assert lines[0] == "dgx-a100: 8 GPUs, 8 NICs, 4 switches, 4 NUMA nodes"
    assert lines[1:3] == (
        "NUMA node 1",
        "└─ switch 1   GPU2(47:00.0)  GPU3(4e:00.0)  mlx5_2(4b:00.0)  mlx5_3(54:00.0)",
    )
    assert "GPU0  X     NV12  NV12  NV12  NV12  NV12  NV12  NV12" in lines
    assert "GPU2  SYS   SYS   PXB   PXB   SYS   SYS   SYS   SYS" in lines


def test_the_pairs_of_a_reversed_board_go_from_corner_to_corner() -> None:
    lines = drawing(machine("b200-reversed"))

    assert "├─ switch 0   GPU0  mlx5_11" in lines
    assert "└─ no switch  GPU5  GPU6  GPU7" in lines
    assert "GPU0  ?     ?     ?     ?     PXB" in lines


def test_a_dead_nvlink_shows_in_the_matrix() -> None:
    lines = drawing(machine("b200-dead-nvlink"))

    assert "GPU2  ?     ?     X     ?     ?     ?     ?     ?" in lines
    assert "GPU3  NV    NV    ?     X     NV    NV    NV    NV" in lines


def test_what_no_source_tells_is_called_unknown() -> None:
    lines = drawing(machine("a3-ultra"))

    assert lines[:2] == (
        "a3-ultra: 8 GPUs, 8 NICs, no known switches, no known NUMA nodes",
        "NUMA node not known",
    )
    assert count_of(machine("a3-ultra"), "rail") == 8


def test_a_c2c_machine_says_what_nearness_means_there() -> None:
    lines = drawing(machine("gb300-nvl72"))

    assert lines[1] == "GPUs are reached over C2C: nearness is judged by NUMA node"
    assert "GPU0  NODE  NODE  SYS   SYS" in lines


def test_a_machine_without_devices_is_its_head_alone() -> None:
    assert len(drawing(machine("cpu"))) == 1
