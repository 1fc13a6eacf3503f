"""Writes the page on topologies, with maps of machines as the command line draws them.

`python -m tests.acceptance.topologies.page docs/explanation/topologies.md`; a test compares the
result with what is committed.
"""

import sys
from pathlib import Path

from gateway.backends.machine_catalogue import machine, machines
from gateway.backends.machine_drawing import drawing
from gateway.service.device_types import list_device_types

PAGE = Path(__file__).resolve().parents[3] / "docs" / "explanation" / "topologies.md"
HEAD = """\
# Topologies

<!-- Written by `python -m tests.acceptance.topologies.page` from what the commands draw. -->

A GPU reaches the network fastest by a NIC under its own PCIe switch. By any other NIC the bytes
cross the CPU, and a gang's step takes as long as its slowest pair. So the gateway knows for each
machine type where every GPU and NIC hangs, and chooses both together.

## What is known of a device

| fact | meaning |
|---|---|
| `switch` | the PCIe switch it hangs under; the pair rule `switch` asks for equal ones |
| `path` | the switches from the root down, where a source shows more than one |
| `root` | PCIe root complex |
| `numa` | NUMA node; the pair rule `numa` asks for equal ones |
| `nvlink` | group of GPUs joined by NVLink |
| `rail` | NICs of equal rail on different nodes meet at one leaf switch |
| `partitions` | GPUs that can be joined apart from the others, with their ring's bandwidth |
| `degraded` | pairs of GPUs of a group whose link is down or slow |
| `is_c2c` | GPUs are reached over C2C, not PCIe, so nearness is judged by NUMA node alone |

A fact that no public source gives is left out. Unknown is not far: it is shown as `?`, and a rule
that needs it is not met.

## Distances

Matrices use NCCL's words, the nearest first.

| word | traffic crosses |
|---|---|
| NV18 | 18 NVLinks; NV where nobody counted them |
| PIX | one PCIe switch |
| PXB | several PCIe switches, no root |
| PHB | one PCIe root |
| NODE | several roots of one NUMA node |
| SYS | the link between NUMA nodes |
| ? | no source says |

The pair rule `switch` is met by PIX and by PXB under one listed switch, `numa` by NODE and nearer,
`node` by anything.

## Which machine a node is

1. The node's annotation `training-gateway.io/topology`, where it has one.
2. The label `training-gateway.io/machine-type` with a name of the list below.
3. Labels of the cloud or of GPU feature discovery: a machine type's `match` must hold as a whole,
   and for one type only. A node that two types fit gets neither, since a wrong pair is worse than
   an unknown one.
4. Otherwise the counts that device plugins report, without any topology.

A site adds machines of its own: [add a machine type](../how-to/add-a-machine-type.md).

## Machines drawn
"""
DRAWN = (
    ("dgx-a100", "Two GPUs and two NICs under each pair of switches; GPU order is not NUMA order."),
    ("dgx-h100", "A NIC of its own for every GPU."),
    ("p4d", "Two GPUs share one NIC."),
    ("b200-reversed", "GPU 0 goes with the last NIC: order says nothing about pairs."),
    ("gb200-nvl72", "Only equal NUMA nodes mean anything here."),
)


def page() -> str:
    """Give the page."""
    return "\n".join([HEAD, *(_section(name, words) for name, words in DRAWN), *_table(), ""])


def _section(name: str, words: str) -> str:
    lines = "\n".join([f"$ gateway device types {name}", *drawing(machine(name))])
    return f"### {name}\n\n{words}\n\n```console\n{lines}\n```\n"


def _table() -> list[str]:
    known = {kind.name: kind for kind in machines().values()}
    rows = [
        f"| `{kind.name}` | {kind.gpus} | {kind.nics} | {kind.switches or '?'} "
        f"| {kind.numa_nodes or '?'} | {', '.join(known[kind.name].match.values())} |"
        for kind in list_device_types()
    ]
    head = "| machine type | GPUs | NICs | switches | NUMA nodes | recognised by |"
    return ["## All that are built in", "", head, "|---|---|---|---|---|---|", *rows]


def main(arguments: list[str]) -> None:
    """Write the page to the file named, or to its place."""
    target = Path(arguments[0]) if arguments else PAGE
    target.write_text(page())


if __name__ == "__main__":
    main(sys.argv[1:])
