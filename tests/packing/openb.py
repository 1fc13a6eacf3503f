"""Filling the openb cluster pod by pod, with GPUs shared in thousandths.

Pods are drawn with replacement until 130 % of the GPUs are asked for; none ever ends, and one that
fits nowhere is gone. Where a pod goes is decided by the product's own gradient. Nodes alike are
scored once: what is known of a state is remembered by what was asked.
"""

import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from gateway.core.devices.fleet import Int64
from gateway.core.placing.fragments import WHOLE_GPU, Mix, Rooms, TypicalPod
from tests.packing.traces import OpenbNode, OpenbPod, openb_nodes, openb_pods

ASKED = 1.3
MOST_GPUS, MOST_CPU = 8, 128_000
NEVER = np.iinfo(np.int64).max
STEP = 1 << 20
"""Above any best fit, so that a step of the gradient decides first."""


class Filled(NamedTuple):
    """What became of one pass."""

    share: float
    """Of the GPUs that exist, how much was given away."""
    seconds: float


class State(NamedTuple):
    """A node with what it has free; GPUs in order of room, since which is which does not matter."""

    model: str
    cpu: int
    memory: int
    units: tuple[int, ...]

    @property
    def room(self) -> int:
        """Free GPUs and CPU in equal parts: the least is the best fit."""
        return sum(self.units) * MOST_CPU // (MOST_GPUS * WHOLE_GPU) + self.cpu


class Known(NamedTuple):
    """How good a state is for a pod, and what state it would be in then."""

    key: int
    after: State | None


NOWHERE = Known(NEVER, None)


class Judge:
    """Scores states for pods by one policy."""

    def __init__(self, policy: str, pods: Iterable[OpenbPod], nodes: Iterable[OpenbNode]) -> None:
        """Take the pods that are drawn from as the typical ones."""
        self.policy = policy
        self._models = sorted({node.model for node in nodes})
        typical = (
            TypicalPod(weight, pod.gpus, pod.units, (pod.cpu, pod.memory), self._kinds_of(pod))
            for pod, weight in sorted(Counter(pods).items())
        )
        self._mix = Mix(typical, len(self._models))
        self._stranded: dict[State, int] = {}

    def scores(self, pod: OpenbPod, states: Iterable[State]) -> dict[State, Known]:
        """Give what is to be known of these states, each with the best of its GPUs chosen."""
        best = dict.fromkeys(states, NOWHERE)
        ways = [(state, after) for state in best for after in taken(state, pod)]
        for (state, after), key in zip(ways, self._keys(ways), strict=True):
            if key < best[state].key:
                best[state] = Known(key, after)
        return best

    def _keys(self, ways: list[tuple[State, State]]) -> list[int]:
        if self.policy != "fragmentation":
            return [after.room for _, after in ways]
        self._judge({each for way in ways for each in way if each not in self._stranded})
        before, after = (
            np.array([self._stranded[way[side]] for way in ways], dtype=np.int64) for side in (0, 1)
        )
        rooms = np.array([way[1].room for way in ways], dtype=np.int64)
        keys: list[int] = (self._mix.losses(before, after) * STEP + rooms).tolist()
        return keys

    def _judge(self, states: set[State]) -> None:
        if states:
            # Sorted, so that nothing depends on the order of a set.
            listed = sorted(states)
            units = [each.units + (0,) * (MOST_GPUS - len(each.units)) for each in listed]
            rooms = Rooms(
                np.array([self._models.index(each.model) for each in listed], dtype=np.int64),
                np.array(units, dtype=np.int64),
                np.array([each[1:3] for each in listed], dtype=np.int64),
            )
            self._stranded.update(zip(listed, self._mix.stranded(rooms).tolist(), strict=True))

    def _kinds_of(self, pod: OpenbPod) -> frozenset[int]:
        return frozenset(i for i, model in enumerate(self._models) if pod.may_use(model))


def taken(state: State, pod: OpenbPod) -> list[State]:
    """Give the states a node may be in with the pod on it: one for each GPU it might share."""
    cpu, memory = state.cpu - pod.cpu, state.memory - pod.memory
    if cpu < 0 or memory < 0 or not pod.may_use(state.model):
        return []
    left = [] if pod.gpus == 1 else [list(state.units)]
    if pod.gpus == 1:
        shareable = sorted({units for units in state.units if units >= pod.units})
        left = [_replaced(state.units, units, units - pod.units) for units in shareable]
    elif pod.gpus:
        # Free GPUs stand last.
        whole = state.units.count(WHOLE_GPU)
        left = [[0] * pod.gpus + list(state.units[: -pod.gpus])] if whole >= pod.gpus else []
    return [State(state.model, cpu, memory, tuple(sorted(units))) for units in left]


def _replaced(units: tuple[int, ...], old: int, new: int) -> list[int]:
    others = list(units)
    others[others.index(old)] = new
    return others


class Filling:
    """One pass over one fleet."""

    def __init__(
        self,
        trace: str,
        policy: str,
        seed: int,
        *,
        nodes: Sequence[OpenbNode] = (),
        pods: Sequence[OpenbPod] = (),
    ) -> None:
        """Start with an idle fleet, of the whole trace unless nodes or pods are given."""
        self.nodes, self.pods = nodes or openb_nodes(), pods or openb_pods(trace)
        self.judge = Judge(policy, self.pods, self.nodes)
        self.draw = random.Random(seed)  # noqa: S311 - a sample, not a secret
        self.states: list[State] = []
        self._numbers: dict[State, int] = {}
        self.state_of = [
            self.number(State(each.model, each.cpu, each.memory, (WHOLE_GPU,) * each.gpus))
            for each in self.nodes
        ]
        self.changed: list[int] = []
        self._known: dict[OpenbPod, dict[int, Known]] = {}
        self._keys: dict[OpenbPod, Int64] = {}
        self._seen: dict[OpenbPod, int] = {}

    def run(self) -> Filled:
        """Draw pods until enough are asked for; gives the share of GPUs that they have then."""
        started = time.process_time()
        total = sum(node.gpus for node in self.nodes) * WHOLE_GPU
        asked = given = 0
        while asked < ASKED * total:
            pod = self.pods[self.draw.randrange(len(self.pods))]
            asked += pod.total_units
            given += pod.total_units if self.place(pod) else 0
        return Filled(given / total, time.process_time() - started)

    def number(self, state: State) -> int:
        """Give a state's number, by which it is found faster than by itself."""
        if state not in self._numbers:
            self._numbers[state] = len(self.states)
            self.states.append(state)
        return self._numbers[state]

    def place(self, pod: OpenbPod) -> bool:
        """Put a pod where the policy likes it best, the first node by name of equal ones."""
        keys = self._up_to_date(pod)
        row = self._random(keys) if self.judge.policy == "random" else int(keys.argmin())
        after = self._known[pod][self.state_of[row]].after
        if after is None:
            return False
        self.state_of[row] = self.number(after)
        self.changed.append(row)
        return True

    def _random(self, keys: Int64) -> int:
        (fitting,) = (keys < NEVER).nonzero()
        return int(fitting[self.draw.randrange(len(fitting))]) if len(fitting) else 0

    def _up_to_date(self, pod: OpenbPod) -> Int64:
        """Give each node's score for a pod, having looked at those only that changed since."""
        known = self._known.setdefault(pod, {})
        keys = self._keys.setdefault(pod, np.full(len(self.nodes), NEVER, dtype=np.int64))
        everybody = range(len(self.nodes))
        seen = self._seen.get(pod)
        rows = everybody if seen is None else dict.fromkeys(self.changed[seen:])
        numbers = [self.state_of[row] for row in rows]
        unknown = [self.states[number] for number in dict.fromkeys(numbers) if number not in known]
        for state, judged in self.judge.scores(pod, unknown).items():
            known[self._numbers[state]] = judged
        keys[list(rows)] = [known[number].key for number in numbers]
        self._seen[pod] = len(self.changed)
        return keys
