"""What a benchmark prints: one figure a line, with its peer, its spread and the machine."""

import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

SYNC_BYTES = 4096
SYNC_COUNT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured value; `peer` is the yardstick of the same run, or None."""

    name: str
    value: float
    unit: str
    target: float | None = None
    peer: str | None = None
    peer_value: float | None = None
    peer_source: str | None = None
    higher_is_better: bool = True
    samples: Sequence[float] = ()
    """Single repetitions; `value` is their median."""

    def line(self) -> str:
        """Give the figure as one JSON line."""
        fields: dict[str, Any] = asdict(self)
        samples = [rounded(sample) for sample in fields.pop("samples")]
        fields["value"] = rounded(self.value)
        if self.peer_value is not None:
            fields["peer_value"] = rounded(self.peer_value)
        fields["spread"] = [min(samples), max(samples)] if samples else None
        fields["machine"] = machine_facts()
        return json.dumps(fields)


def repetitions(usual: int) -> int:
    """Give how often to measure: BENCH_REPETITIONS where it is set, for long runs by hand."""
    return int(os.environ.get("BENCH_REPETITIONS", usual))


def rounded(value: float) -> float:
    """Give three significant digits behind a number's first, which is more than is true."""
    return float(f"{value:.4g}")


def median_figure(name: str, samples: Sequence[float], unit: str, **fields: Any) -> Figure:
    """Give the median of repetitions as a figure."""
    return Figure(
        name=name, value=statistics.median(samples), unit=unit, samples=tuple(samples), **fields
    )


@cache
def machine_facts() -> dict[str, Any]:
    """Give what the figures depend on: processor, memory, interpreter, disk syncs a second."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "disk_syncs_per_second": round(disk_syncs_per_second()),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def disk_syncs_per_second() -> float:
    """Give how often a second 4 KiB can be appended to a file and synced."""
    block = os.urandom(SYNC_BYTES)
    with tempfile.TemporaryFile(buffering=0) as file:
        started = time.perf_counter()
        for _ in range(SYNC_COUNT):
            file.write(block)
            os.fsync(file.fileno())
        return SYNC_COUNT / (time.perf_counter() - started)
