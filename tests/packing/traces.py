"""The public data that packing is measured on; each folder says where it is from."""

import csv
import gzip
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from gateway.core.placing.fragments import WHOLE_GPU

DATA = Path(__file__).parent / "data"


class OpenbNode(NamedTuple):
    """A machine of the openb cluster; it has no GPU of any model where `gpus` is 0."""

    model: str
    cpu: int
    memory: int
    gpus: int


class OpenbPod(NamedTuple):
    """What one pod of the openb trace asks for."""

    cpu: int
    memory: int
    gpus: int
    units: int
    """Thousandths of each GPU."""
    models: str
    """Accepted models between bars; empty for any."""

    def may_use(self, model: str) -> bool:
        """Whether a machine of this model will do."""
        return not self.models or model in self.models.split("|")

    @property
    def total_units(self) -> int:
        """Thousandths of a GPU in all."""
        return self.gpus * self.units


def rows(name: str) -> Iterator[dict[str, str]]:
    """Give the rows of one file; says what is missing, for without it nothing was measured."""
    path = DATA / f"{name}.csv.gz"
    assert path.exists(), f"{path} is missing; its folder's README.md names where it is from"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


@cache
def openb_nodes() -> tuple[OpenbNode, ...]:
    """Give the 1,523 machines, by name."""
    return tuple(
        OpenbNode(row["model"], int(row["cpu_milli"]), int(row["memory_mib"]), int(row["gpu"]))
        for row in rows("openb-2023/openb_node_list_all_node")
    )


@cache
def openb_pods(trace: str) -> tuple[OpenbPod, ...]:
    """Give the pods of one list: default, gpuspec33 or multigpu50."""
    return tuple(_openb_pod(row) for row in rows(f"openb-2023/openb_pod_list_{trace}"))


def _openb_pod(row: dict[str, str]) -> OpenbPod:
    gpus = int(row["num_gpu"])
    # The share is only meant for pods of one GPU; more are always whole.
    units = int(row["gpu_milli"]) if gpus == 1 else WHOLE_GPU
    # The lists with more large pods have no column for models.
    models = row.get("gpu_spec") or ""
    return OpenbPod(int(row["cpu_milli"]), int(row["memory_mib"]), gpus, units, models)


class LingjunHost(NamedTuple):
    """A host of the Lingjun cluster with the switches above it."""

    aggregation: str
    switch: str
    """Unique, unlike the label in the file, which repeats from group to group."""


@cache
def lingjun_hosts() -> tuple[LingjunHost, ...]:
    """Give the 847 hosts in the order of their hashed addresses."""
    found = sorted(rows("lingjun-topology-2023/topo"), key=lambda row: row["ip"])
    return tuple(LingjunHost(row["PSW"], f"{row['PSW']}-{row['ASW']}") for row in found)


@cache
def itp_gang_sizes() -> tuple[int, ...]:
    """Give the GPUs of each job of the ten ITP clusters, in order of submission in each."""
    return tuple(int(row["gpus"]) for row in rows("itp-2021/gang_sizes"))
