"""What the catalogue knows of machines, and what it says of a file that is wrong."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.backends.machine_catalogue import (
    check_file,
    known_facts,
    machine,
    machine_matching,
    machine_names,
    machines,
    use_site_machines,
)
from gateway.backends.machine_reading import read_machine
from gateway.core.vocabulary import DeviceKind
from gateway.errors import InvalidInput

INSTANCE = "node.kubernetes.io/instance-type"
OWN = "training-gateway.io/machine-type"


@pytest.fixture(autouse=True)
def _no_site() -> Iterator[None]:
    yield
    use_site_machines(None)


def facts(**changes: Any) -> dict[str, Any]:
    board = {
        "cpu_cores": 64,
        "memory_gib": 512,
        "gpus": [
            {"pci": "0000:1b:00.0", "switch": 0, "numa": 0, "nvlink": 0},
            {"pci": "0000:1c:00.0", "switch": 1, "numa": 1, "nvlink": 0},
        ],
        "nics": [{"name": "mlx5_0", "pci": "0000:18:00.0", "switch": 0, "numa": 0, "rail": 0}],
    }
    return {**board, **changes}


def gpu(**fields: object) -> list[dict[str, object]]:
    return [{"pci": "0000:1b:00.0", **fields}, {}]


def write(folder: Path, name: str, **changes: Any) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(facts(**changes)))
    return path


def refusal(text: str) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        read_machine("my-board", text, "my-board.yaml")
    return caught.value


def test_at_least_fifteen_real_machines_are_built_in_and_each_names_its_source() -> None:
    folder = Path(read_machine.__code__.co_filename).parent / "data" / "machines"
    sourced = [path.stem for path in folder.glob("*.yaml") if "Source: " in path.read_text()]

    assert len(sourced) >= 15
    assert {"single-gpu", "cpu"} == set(machine_names()) - set(sourced)


@pytest.mark.parametrize(
    ("instance", "name"),
    [
        ("p4d.24xlarge", "p4d"),
        ("p5.48xlarge", "p5"),
        ("Standard_ND96isr_H100_v5", "nd-h100-v5"),
        ("BM.GPU.GB200.4", "gb200-nvl72"),
        ("a4-highgpu-8g", "a4-high"),
    ],
)
def test_a_clouds_instance_type_names_the_machine(instance: str, name: str) -> None:
    found = machine_matching({INSTANCE: instance, "zone": "a"})

    assert found is machine(name)


def test_our_own_label_goes_before_all_others_and_a_foreign_one_names_nothing() -> None:
    assert machine_matching({OWN: "dgx-h100", INSTANCE: "p4d.24xlarge"}) is machine("dgx-h100")
    assert machine_matching({OWN: "unknown", INSTANCE: "p4d.24xlarge"}) is None
    assert machine_matching({INSTANCE: "m7i.large"}) is None
    assert machine_matching({}) is None


def test_a_c2c_machine_has_no_switch_above_its_gpus() -> None:
    trays = [each for each in machines().values() if each.topology.is_c2c]

    assert [tray.name for tray in trays] == ["gb200-nvl72", "gb300-nvl72"]
    assert {gpu.switch for tray in trays for gpu in tray.topology.gpus} == {-1}


def test_the_topology_holds_the_same_devices_as_the_list() -> None:
    for kind in machines().values():
        for which, slots in (
            (DeviceKind.GPU, kind.topology.gpus),
            (DeviceKind.RDMA, kind.topology.nics),
        ):
            told = [(d.ordinal, d.switch, d.numa, d.rail) for d in kind.named(which)]
            assert told == [(s.ordinal, s.switch, s.numa, s.rail) for s in slots]


def test_facts_that_no_device_tells_are_known_by_every_name_of_the_type(tmp_path: Path) -> None:
    write(tmp_path, "my-board", degraded=[[1, 0]])
    use_site_machines(tmp_path)

    assert set(known_facts()) == {
        *("gb200-nvl72", "BM.GPU.GB200.4"),
        *("gb300-nvl72", "Standard_ND128isr_GB300_v6", "my-board"),
    }
    assert known_facts()["my-board"].links == ((0, 1),)


def test_a_site_adds_its_own_machine_and_may_replace_a_built_in_one(tmp_path: Path) -> None:
    write(tmp_path, "my-board", match={INSTANCE: "mine"})
    write(tmp_path, "cpu", gpus=[], nics=[])

    assert use_site_machines(tmp_path) == ("cpu", "my-board")
    assert machine_matching({INSTANCE: "mine"}) is machine("my-board")
    assert machine("cpu").total["cpu"] == machine("my-board").total["cpu"] == 64_000
    assert machine_names()[-1] == "my-board"


def test_a_wrong_file_leaves_the_sites_machines_as_they_were(tmp_path: Path) -> None:
    write(tmp_path, "my-board")
    use_site_machines(tmp_path)
    write(tmp_path, "other", gpus="eight")

    with pytest.raises(InvalidInput, match=r"other\.yaml: /gpus is the text 'eight', not a list"):
        use_site_machines(tmp_path)
    assert machine("my-board").origin.endswith("my-board.yaml")


def test_two_types_that_would_match_one_node_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "my-p5", match={INSTANCE: "p5.48xlarge", "owner": "us"})

    with pytest.raises(InvalidInput, match="also fits nodes of machine type 'p5'") as caught:
        check_file(path)
    assert "'my-p5' and 'p5' differ" in caught.value.hint


def test_a_folder_or_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is not a folder"):
        use_site_machines(tmp_path / "none")
    with pytest.raises(InvalidInput, match="cannot be read"):
        check_file(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("changes", "pointer", "words"),
    [
        ({"gpus": gpu(numma=0)}, "/gpus/0/numma", "did you mean 'numa'?"),
        ({"nic": []}, "/nic", "did you mean 'nics'?"),
        ({"zzz": 1}, "/zzz", "remove it"),
        ({"gpus": gpu(switch=-1)}, "/gpus/0/switch", "write a whole number from 0 to 32767"),
        ({"gpus": gpu(switch=True)}, "/gpus/0/switch", "write a whole number"),
        ({"gpus": gpu(pci="1B:00.0")}, "/gpus/0/pci", '"0000:1b:00.0"'),
        ({"gpus": [*gpu(), *gpu()]}, "/gpus/2/pci", "give each device its own PCI address"),
        ({"gpus": [{"name": "a"}] * 2}, "/gpus/1/name", "give each device its own name"),
        ({"gpus": [{}] * 63}, "/gpus", "list at most 62"),
        ({"gpus": gpu(switch=2, path=[0, 1])}, "/gpus/0/switch", "one of those on the path"),
        ({"gpus": gpu(switch=0, path=[0, 0])}, "/gpus/0/path", "write each number once"),
        ({"gpus": gpu(switch=0, numa=1)}, "/nics/0/numa", "a switch lies in one NUMA node"),
        ({"is_c2c": True}, "/gpus/0/switch", "judged by `numa`"),
        ({"is_c2c": "yes"}, "/is_c2c", "write true or false"),
        ({"partitions": [{"gpus": [0, 5]}]}, "/partitions/0/gpus", "name GPUs by ordinal"),
        ({"partitions": [{"size": 2}]}, "/partitions/0/size", "remove it"),
        ({"partitions": [{}]}, "/partitions/0/gpus", "add gpus"),
        ({"partitions": [{"gpus": []}]}, "/partitions/0/gpus", "name GPUs by ordinal"),
        ({"degraded": [[0, 9]]}, "/degraded/0", "name GPUs by ordinal"),
        ({"degraded": [[0]]}, "/degraded/0", "write [0, 2]"),
        ({"nics": [{}]}, "/nics/0/name", "RDMA device name"),
        ({"nics": [7]}, "/nics/0", "write `key: value` lines"),
        ({"cpu_cores": 0}, "/cpu_cores", "from 1 to"),
        ({"labels": {"a": 1}}, "/labels/a", "write text in quotes"),
    ],
)
def test_a_wrong_field_is_told_with_file_place_and_remedy(
    changes: dict[str, Any], pointer: str, words: str
) -> None:
    error = refusal(yaml.safe_dump(facts(**changes)))

    assert error.pointer == pointer
    assert error.detail.startswith(f"my-board.yaml: {pointer} ")
    assert words in error.hint


def test_text_that_is_no_yaml_or_no_mapping_is_refused() -> None:
    assert "is not YAML" in refusal("{").detail
    assert "is empty, not a mapping" in refusal("").detail
    assert refusal("cpu_cores: 1").pointer == "/gpus"


def test_a_file_name_that_is_no_machine_name_is_refused() -> None:
    with pytest.raises(InvalidInput, match="gives the name 'My Board'"):
        read_machine("My Board", yaml.safe_dump(facts()), "My Board.yaml")


def test_partitions_and_degraded_pairs_are_read_as_facts() -> None:
    written = facts(partitions=[{"gpus": [0, 1], "bandwidth": 235}], degraded=[[0, 1]], nvlinks=18)

    found = read_machine("my-board", yaml.safe_dump(written), "my-board.yaml").topology

    assert found.partitions == ((2, 0b11, 235),)
    assert (found.links, found.nvlinks) == (((0, 1),), 18)
