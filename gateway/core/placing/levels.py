"""Domains of nodes: those that share one value of a node label, such as a rack's.

A level is one label. Nested levels and slices would be further fields of a pod set that name more
than one level; a level itself would stay what it is here.
"""

from typing import NamedTuple

import numpy as np

from gateway.core.devices.fleet import Int32, Int64
from gateway.core.devices.labels import LabelColumn

NO_DOMAIN = 0
"""Domain of the nodes without the label; it is never chosen for a required level."""


class Level(NamedTuple):
    """The domains of one label, numbered from 1 by name."""

    domain_of: Int32
    """Domain of each node."""
    rows: tuple[Int64, ...]
    """Nodes of each domain, in order."""


def level_of(column: LabelColumn) -> Level:
    """Give the domains of one label; a value that no node has any more is an empty domain."""
    # By name: codes depend on the order in which nodes came, ties between domains must not.
    by_name = sorted(column.code_of)
    # The last entry is for nodes without the label.
    domain_of_code = np.zeros(len(by_name) + 1, dtype=np.int32)
    for domain, name in enumerate(by_name, start=1):
        domain_of_code[column.code_of[name]] = domain
    domain_of = domain_of_code[column.codes]
    order = np.argsort(domain_of, kind="stable")
    ends = np.cumsum(np.bincount(domain_of, minlength=len(by_name) + 1))
    return Level(domain_of=domain_of, rows=tuple(np.split(order, ends[:-1].tolist())))
