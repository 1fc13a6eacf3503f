"""Placement slice by slice without anything clever: dicts of names, counted anew at every step."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from gateway.core.jobs.request import PodSetRequest
from gateway.core.placing.room import PodPlace
from tests.properties.plain_placing import (
    Masks,
    Places,
    PlainRoom,
    PodSets,
    fill_all,
    fullness,
)

Path = tuple[str, ...]
"""Values of a node's labels, from the widest slices to the smallest."""
T = TypeVar("T")
Names = list[Path | None]
"""By node; None where it lacks a label that slices need."""


class Cut:
    """A gang in slices: the set that is cut, who comes before it, and where which node is."""

    def __init__(self, room: PlainRoom, pod_sets: PodSets) -> None:
        ranked = sorted((e for e in pod_sets if e.slices), key=lambda each: each.name != "Master")
        self.main = [each for each in ranked if each.count == max(e.count for e in ranked)][-1]
        singles = [each for each in ranked if each is not self.main and each.count == 1]
        self.lead = singles[0] if singles else None
        self.sizes = [size for _, size in self.main.slices]
        preferred = self.main.level if not self.main.is_level_required else ""
        labels = [dict(pairs) for pairs in room.fleet.labels]
        self.paths: Names = [
            (each.get(preferred, ""), *(each[label] for label, _ in self.main.slices))
            if all(label in each for label, _ in self.main.slices)
            else None
            for each in labels
        ]
        self.has_outer = bool(preferred)
        pods = self.main.count + (self.lead is not None)
        self.slices = (pods + self.sizes[0] - 1) // self.sizes[0]


def place_cut(room: PlainRoom, pod_sets: PodSets, nodes: Masks) -> Places | None:
    """Place a gang in slices, or nothing of it."""
    cut, before = Cut(room, pod_sets), room.copy()
    for first in starts(room, cut, nodes):
        places: Places = {}
        if first is not None and cut.lead is not None:
            place = room.choose(first, cut.lead, siblings=0)
            assert place is not None
            room.take(place, cut.lead)
            places[cut.lead.name] = [place]
        found = cut_from(room, cut, nodes, first)
        if found is not None:
            places[cut.main.name] = found
            others = rest(room, pod_sets, places, nodes)
            if others is not None:
                return others
        room.become(before)
    return None


def rest(room: PlainRoom, pod_sets: PodSets, places: Places, nodes: Masks) -> Places | None:
    """Fill in the sets that are not cut."""
    others = [each for each in pod_sets if each.name not in places]
    return fill_all(room, others, nodes, places)


def starts(room: PlainRoom, cut: Cut, nodes: Masks) -> list[int | None]:
    """Give the nodes to try for the pod before the others, the most promising first."""
    if cut.lead is None:
        return [None]
    pods = pods_of(room, cut.main, nodes)
    takes_lead = room.capacity(cut.lead, nodes[cut.lead.name])
    rows = [row for row in range(len(pods)) if takes_lead[row] and cut.paths[row]]

    def promise(row: int) -> tuple[object, ...]:
        path = cut.paths[row]
        assert path is not None
        inside = slices_in(cut, pods, path[:2])
        mine = room_in(cut, pods, path[:2])
        return -min(inside, cut.slices), inside, mine, path, fullness(room, row)

    return [*sorted(rows, key=promise)]


def pods_of(room: PlainRoom, pod_set: PodSetRequest, nodes: Masks) -> list[int]:
    return [min(each, pod_set.count) for each in room.capacity(pod_set, nodes[pod_set.name])]


def slices_in(cut: Cut, pods: list[int], path: Path) -> int:
    """Give how many whole slices of its own size the domain of a path takes."""
    size = cut.sizes[max(0, len(path) - 2)]
    if len(path) == len(cut.sizes) + 1:
        return sum(pods[row] for row, own in enumerate(cut.paths) if own == path) // size
    inner = cut.sizes[len(path) - 1]
    total = sum(slices_in(cut, pods, child) * inner for child in children(cut, path))
    return total // size


def room_in(cut: Cut, pods: list[int], path: Path) -> int:
    """Give how many pods the domain of a path takes."""
    inside = [row for row, own in enumerate(cut.paths) if own and own[: len(path)] == path]
    return sum(pods[row] for row in inside)


def children(cut: Cut, path: Path) -> list[Path]:
    """Give the domains right inside one."""
    depth = len(path)
    return sorted({own[: depth + 1] for own in cut.paths if own and own[:depth] == path})


def cut_from(room: PlainRoom, cut: Cut, nodes: Masks, first: int | None) -> list[PodPlace] | None:
    """Take room for the set that is cut; the pod before it is on the first node already."""
    pods = pods_of(room, cut.main, nodes)
    path = None if first is None else cut.paths[first]
    if first is not None and path is not None:
        pods[first] += 1
        if not all(slices_in(cut, pods, path[:n]) for n in range(1, len(path) + 1)):
            return None
    if sum(slices_in(cut, pods, each) for each in children(cut, ())) < cut.slices:
        return None
    mine: list[PodPlace] = []
    for row, count in chosen(room, cut, pods, ((), path, first, cut.slices)):
        for siblings in reversed(range(min(count - (row == first), cut.main.count - len(mine)))):
            place = room.choose(row, cut.main, siblings)
            assert place is not None
            room.take(place, cut.main)
            mine.append(place)
    return mine


def chosen(
    room: PlainRoom, cut: Cut, pods: list[int], at: tuple[Path, Path | None, int | None, int]
) -> list[tuple[int, int]]:
    """Give nodes with pods: domain after domain, and inside the smallest node after node."""
    path, own, first, count = at
    depth = len(path)
    if depth == len(cut.sizes) + 1:
        rows = [row for row, other in enumerate(cut.paths) if other == path]
        return picked(rows, lambda row: pods[row], (lambda row: fullness(room, row), first, count))
    inside = {child: slices_in(cut, pods, child) for child in children(cut, path)}
    homeless = [each for each in inside if cut.has_outer and not depth and not each[0]]
    named = [each for each in inside if each not in homeless]
    start = own[: depth + 1] if own is not None and own[:depth] == path else None
    order = (lambda each: (inside[each], room_in(cut, pods, each), each), start, count)
    if start in homeless:
        found = picked(homeless, inside.__getitem__, order)
        left = count - sum(share for _, share in found)
        found += picked(named, inside.__getitem__, (order[0], None, left))
    else:
        found = picked(named, inside.__getitem__, order)
        left = count - sum(share for _, share in found)
        found += picked(homeless, inside.__getitem__, (order[0], None, left))
    size = cut.sizes[max(0, depth - 1)]
    # Below the smallest domains it is pods that are counted, not slices.
    inner = cut.sizes[depth] if depth < len(cut.sizes) else 1
    nodes = []
    for child, share in found:
        mine = first if child == start else None
        nodes += chosen(room, cut, pods, (child, own, mine, share * size // inner))
    return nodes


def picked(
    options: Iterable[T],
    amount: Callable[[T], int],
    wanted: tuple[Callable[[T], Any], T | None, int],
) -> list[tuple[T, int]]:
    """Give the one to begin with, then the first that takes all that is missing, or most."""
    order, first, missing = wanted
    left = {each: amount(each) for each in options}
    found: list[tuple[T, int]] = []
    if first is not None:
        found.append((first, min(missing, left.pop(first))))
        missing -= found[0][1]
    while missing and max(left.values(), default=0):
        enough = min(missing, max(left.values()))
        best = min((each for each in left if left[each] >= enough), key=order)
        share = min(missing, left.pop(best))
        found.append((best, share))
        missing -= share
    return found
