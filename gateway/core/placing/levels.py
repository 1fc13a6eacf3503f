"""Domains of nodes: those that share one value of a node label, such as a rack's.

A level is one label. Slices look at several at once, so a nest holds domains inside domains.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from gateway.core.devices.fleet import Bool, Int32, Int64
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


class Tier(NamedTuple):
    """The domains of one label inside those of the labels before it, in order of their names."""

    domain_of: Int64
    """Domain of each node."""
    rows: tuple[Int64, ...]
    """Nodes of each domain, in order."""
    outer_of: Int64
    """The domain of the tier before that each domain is in; 0 in the first."""
    is_named: Bool
    """Whether the nodes of each domain have this label at all."""


def nest_of(levels: Iterable[Level], nodes: int) -> tuple[Tier, ...]:
    """Give a tier for each level, widest first; a value inside two others is two domains."""
    outer = np.zeros(nodes, dtype=np.int64)
    tiers = []
    for level in levels:
        joint, domain_of = np.unique(outer * len(level.rows) + level.domain_of, return_inverse=True)
        order = np.argsort(domain_of, kind="stable")
        ends = np.cumsum(np.bincount(domain_of, minlength=len(joint)))
        tiers.append(
            Tier(
                domain_of=domain_of,
                rows=tuple(np.split(order, ends[:-1].tolist())),
                outer_of=joint // len(level.rows),
                is_named=joint % len(level.rows) != NO_DOMAIN,
            )
        )
        outer = domain_of
    return tuple(tiers)


def one_domain(nodes: int) -> Level:
    """Give a level of which all nodes are one domain."""
    rows = np.arange(nodes)
    return Level(domain_of=np.ones(nodes, dtype=np.int32), rows=(rows[:0], rows))
