"""Nodes kept free during one pass for jobs that starve: whose, from when on, and who is next.

One job of each flavor: the oldest that waited for long and that nodes alone refuse, strict heads at
once. From its turn on nobody else is placed on its nodes; whoever comes before it may be. It keeps
them until it starts, leaves, loses its quota or has no turn any more, as behind a strict head. That
is remembered by the database: a pass only says what is to be so from the next one on.

A job's whole wait counts, not only the part for which nodes alone refused it: that is in its own
row, and needs no memory that a restart could lose.
"""

from collections.abc import Collection, Container, Iterable, Iterator

import numpy as np

from gateway.core.admission.asks import Ask, Option
from gateway.core.admission.releases import nodes_to_keep, would_do
from gateway.core.admission.state import AskKey, State
from gateway.core.admission.types import NodeHold
from gateway.core.devices.fleet import Bool
from gateway.core.resources.words import listed

Starving = tuple[int, int, Ask, Option]
"""Since when it waits, job, what it asks for and how: the oldest first."""
MOST_ASKED = 8
"""Of those that starve, so many of the oldest are asked in one pass whether any nodes would do."""


class Keeping:
    """What is kept in one pass."""

    def __init__(self, state: State) -> None:
        """Look at who holds nodes as the pass begins."""
        self._state = state
        self._held: dict[str, NodeHold] = {}
        self._keys: dict[str, AskKey] = {}
        for hold in state.node_holds:
            key = _key(state, hold)
            if key is not None and _stands(state, hold, state.ask(key)):
                self._held[hold.flavor], self._keys[hold.flavor] = hold, key
        if len(self._held) < len(state.node_holds):
            # Others may hold nodes instead from now on, so all that starve have to be seen.
            state.revive_refused()
        self._kept: Bool | None = None
        self._next: dict[str, list[Starving]] = {}
        # Once for the pass: thousands may starve while somebody else holds what they could use.
        self._seen = {*self._keys.values(), *self._candidates()}

    def has_turn(self, ask: Ask) -> bool:
        """Whether an ask takes part although it is known not to fit: its turn must be seen."""
        return (ask.queue.name, ask.class_id) in self._seen

    def roots(self) -> set[int]:
        """Give the roots of those who hold nodes, or may begin to."""
        tree = self._state.scene.tree
        return {id(tree.root_of(queue)) for queue in {queue for queue, _ in self._seen}}

    @property
    def is_on(self) -> bool:
        """Whether nodes are kept from the others by now."""
        return self._kept is not None

    def open(self, nodes: dict[str, Bool]) -> dict[str, Bool]:
        """Give the nodes that others may still use."""
        kept = self._kept
        return nodes if kept is None else {name: mask & ~kept for name, mask in nodes.items()}

    def failed(self, ask: Ask, passing: Iterable[Option], slot: int) -> bool:
        """Note who had its turn in vain; True where nodes are kept from now on.

        Args:
            ask: what failed.
            passing: options that quota lets through, so that nodes must have refused them.
            slot: of the job whose turn it was.
        """
        key = ask.queue.name, ask.class_id
        mine = [self._held[flavor] for flavor, holder in self._keys.items() if holder == key]
        for hold in mine:
            self._keep(hold)
        for option in passing:
            if option.flavor not in self._held:
                self._note(ask, option, slot)
        return bool(mine)

    def _candidates(self) -> Iterator[AskKey]:
        """Give what may starve for nodes of a flavor of which nobody holds any."""
        state, held = self._state, self._held.keys()
        # Whoever was let be tried again says so itself if it fails.
        state.starving = {key for key in state.starving if _is_refused(state, key)}
        for key in state.starving:
            if not held >= {option.flavor for option in state.asks[key].options}:
                yield key

    def holds(
        self, leaving: Container[int], failed: Container[AskKey], cut_off: Collection[str]
    ) -> tuple[NodeHold, ...]:
        """Give who holds which nodes from the next pass on, by flavor.

        Args:
            leaving: jobs that were admitted.
            failed: whose turn came.
            cut_off: queues in which turns may be left.
        """
        # Whoever has no turn cannot start, and would keep nodes from others for nothing.
        going_on = (
            hold
            for flavor, hold in self._held.items()
            if self._keys[flavor] in failed or self._keys[flavor][0] in cut_off
        )
        found = [*going_on, *filter(None, map(self._oldest, self._next.values()))]
        staying = (hold for hold in found if hold.job_id not in leaving)
        return tuple(sorted(staying, key=lambda hold: hold.flavor))

    def _oldest(self, starving: Iterable[Starving]) -> NodeHold | None:
        """Give the hold of the one that waits for longest and for which any nodes would do."""
        oldest = sorted(starving, key=lambda each: each[:2])[:MOST_ASKED]
        return next(filter(None, map(self._begin, oldest)), None)

    def _keep(self, hold: NodeHold) -> None:
        fleet = self._state.scene.fleet
        rows = np.isin(fleet.node_id, hold.node_ids)
        self._kept = rows if self._kept is None else self._kept | rows

    def _note(self, ask: Ask, option: Option, slot: int) -> None:
        table = self._state.lines.table
        since_us = max(int(table.submitted_us[slot]), table.eligible_us.get(slot, 0))
        due_us = self._state.starves_at_us(ask, since_us)
        if due_us > self._state.now_us:
            # Another of its jobs may wait for longer, so its own instant has to be watched, too.
            self._state.watch(ask, due_us)
            return
        job_id = int(table.job_id[slot])
        self._next.setdefault(option.flavor, []).append((since_us, job_id, ask, option))

    def _begin(self, starving: Starving) -> NodeHold | None:
        """Give the hold of one that starves; None for a gang that no nodes could ever take."""
        _, job_id, ask, option = starving
        fleet = self._state.scene.fleet
        rows = nodes_to_keep(self._state.scene, ask.request, option.choice)
        if rows is None:
            return None
        node_ids = tuple(sorted(fleet.node_id[rows].tolist()))
        return NodeHold(flavor=option.flavor, job_id=job_id, node_ids=node_ids)


def holders_words(state: State) -> str:
    """Say for whom nodes are held, by size and queue alone."""
    keys = [key for hold in state.node_holds if (key := _key(state, hold)) is not None]
    asks = [state.ask(key) for key in keys]
    return listed(f"{_sized(ask.gpus)} job of queue {ask.queue.name}" for ask in asks)


def _sized(gpus: int) -> str:
    is_vowel = str(gpus).startswith("8") or gpus in {11, 18}
    return f"{'an' if is_vowel else 'a'} {gpus}-GPU"


def _stands(state: State, hold: NodeHold, ask: Ask) -> bool:
    """Whether a hold still makes sense: its job has quota, and could use the nodes."""
    fleet, tree = state.scene.fleet, state.scene.tree
    rows = np.flatnonzero(np.isin(fleet.node_id, hold.node_ids))
    return len(rows) == len(hold.node_ids) and any(
        each.flavor == hold.flavor
        and tree.has_room(ask.queue.name, each.counted)
        and would_do(state.scene, ask.request, each.choice, rows)
        for each in ask.options
    )


def _is_refused(state: State, key: AskKey) -> bool:
    """Whether an ask is known not to find nodes."""
    ask = state.asks.get(key)
    return ask is not None and ask.is_dead and ask.lacks_nodes


def _key(state: State, hold: NodeHold) -> AskKey | None:
    table = state.lines.table
    slot = table.find(hold.job_id)
    if slot is None:
        return None
    key = table.words["queue"][int(table.queue[slot])], int(table.class_id[slot])
    return key if key[0] in state.scene.queues and key[1] in state.classes else None
