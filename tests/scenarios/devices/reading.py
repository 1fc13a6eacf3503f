"""Reads the device scenarios: machines, what is busy, what a pod asks for, what it gets."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gateway.core.devices.fleet import DeviceSlot, MachineType, Partition
from gateway.core.devices.selection import DeviceWish
from gateway.core.placing.shapes import wish_of
from gateway.manifests import read_job
from gateway.service.gangs import request_of

FOLDER = Path(__file__).parent
FILES = ("joint", "scopes", "partitions")
FIELDS = {"name", "differs", "machine", "busy_gpus", "busy_nics", "ask", "gpus", "nics", "refused"}
Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceScenario:
    """One question to a machine, and the answer; devices by their numbers in the file."""

    name: str
    machine: MachineType
    gpus: tuple[int, ...]
    """Numbers of the machine's GPUs, in order of ordinal."""
    nics: tuple[int, ...]
    busy: tuple[tuple[int, ...], tuple[int, ...]]
    wish: DeviceWish
    expected: tuple[tuple[int, ...], tuple[int, ...]] | None
    """GPUs and NICs; None for a refusal."""

    @property
    def free(self) -> tuple[int, int]:
        """Masks of the free GPUs and NICs."""
        return (
            mask_of(each for each in range(len(self.gpus)) if self.gpus[each] not in self.busy[0]),
            mask_of(each for each in range(len(self.nics)) if self.nics[each] not in self.busy[1]),
        )


def mask_of(ordinals: Iterable[int]) -> int:
    """Give the mask of these ordinals."""
    return sum(1 << ordinal for ordinal in ordinals)


def read_scenarios() -> list[DeviceScenario]:
    """Give all scenarios; refuses a file with a word that it does not know."""
    topologies = _read("topologies")
    scenarios = [_scenario(facts, topologies) for name in FILES for facts in _read(name)]
    assert len({each.name for each in scenarios}) == len(scenarios)
    return scenarios


def _read(name: str) -> Any:
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


def _scenario(facts: Facts, topologies: Facts) -> DeviceScenario:
    assert not facts.keys() - FIELDS, facts
    topology = topologies[facts["machine"]]
    is_refused = facts.get("refused", False)
    assert is_refused != ("gpus" in facts), facts
    return DeviceScenario(
        name=facts["name"],
        machine=_machine(facts["machine"], topology),
        gpus=tuple(topology["gpus"]),
        nics=tuple(topology["nics"]),
        busy=(tuple(facts.get("busy_gpus", ())), tuple(facts.get("busy_nics", ()))),
        wish=_wish(facts["ask"]),
        expected=None if is_refused else (tuple(facts["gpus"]), tuple(facts["nics"])),
    )


def _machine(name: str, topology: Facts) -> MachineType:
    partitions = [
        Partition(len(gpus), mask_of(gpus))
        for same_size in topology.get("partitions", ())
        for gpus in same_size
    ]
    return MachineType(
        name=name,
        gpus=_slots(topology["gpus"]),
        nics=_slots(topology["nics"]),
        partitions=tuple(partitions),
    )


def _slots(places: Mapping[int, tuple[int, int]]) -> tuple[DeviceSlot, ...]:
    return tuple(
        DeviceSlot(ordinal=ordinal, switch=switch, numa=numa)
        for ordinal, (switch, numa) in enumerate(places.values())
    )


def _wish(ask: Facts) -> DeviceWish:
    """Give what a pod wants, read as any job that asks for it is read."""
    amounts = {key: ask[key] for key in ("gpu", "rdma") if key in ask}
    devices = {key: ask[key] for key in ask.keys() - amounts.keys()}
    document = {"name": "a", "image": "a", "resources": amounts, "devices": devices}
    return wish_of(request_of(read_job(document)).pod_sets[0])
