"""The engine decides as its specification does, in every state that a world can get into.

A bounded number of lives in the usual run; `ENGINE_LIVES` in the environment asks for more.
"""

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gateway.core.admission import Policies, plan_cycle
from tests.oracle import naive_plan
from tests.oracle.comparing import differences
from tests.properties import engine_steps
from tests.properties.engine_steps import Step, a_world
from tests.properties.engine_world import World
from tests.properties.strategies import Dice, seeds

LIVES = int(os.environ.get("ENGINE_LIVES", "120"))
BUDGET = 1000


class EngineMachine(RuleBasedStateMachine):
    """A world in which anything may happen between two cycles."""

    world = World()

    @initialize(seed=seeds)
    def begin(self, seed: int) -> None:
        self.world = a_world(seed)

    def _take(self, step: Step, seed: int) -> None:
        step(self.world, Dice(seed))

    @rule(seed=seeds)
    def submit(self, seed: int) -> None:
        self._take(engine_steps.submit, seed)

    @rule(seed=seeds)
    def finish(self, seed: int) -> None:
        self._take(engine_steps.finish, seed)

    @rule(seed=seeds)
    def cancel(self, seed: int) -> None:
        self._take(engine_steps.cancel, seed)

    @rule(seed=seeds)
    def add_node(self, seed: int) -> None:
        self._take(engine_steps.add_node, seed)

    @rule(seed=seeds)
    def lose_node(self, seed: int) -> None:
        self._take(engine_steps.lose_node, seed)

    @rule(seed=seeds)
    def taint_relabel_or_break_a_node(self, seed: int) -> None:
        self._take(engine_steps.change_node, seed)

    @rule(seed=seeds)
    def edit_a_queue(self, seed: int) -> None:
        self._take(engine_steps.edit_queue, seed)

    @rule(seed=seeds)
    def pause_or_open_a_queue(self, seed: int) -> None:
        self._take(engine_steps.pause_or_open, seed)

    @rule(seed=seeds)
    def edit_the_tree(self, seed: int) -> None:
        self._take(engine_steps.edit_tree, seed)

    @rule(seed=seeds)
    def use_lately(self, seed: int) -> None:
        self._take(engine_steps.use_lately, seed)

    @rule(seed=seeds)
    def let_time_pass(self, seed: int) -> None:
        self._take(engine_steps.tick, seed)

    @rule(seed=seeds)
    def set_the_clock_back(self, seed: int) -> None:
        self._take(engine_steps.set_back, seed)

    @rule(budget=st.integers(0, 3))
    def decide_within_a_budget(self, budget: int) -> None:
        self._decide(budget)

    @invariant()
    def decide(self) -> None:
        self._decide(BUDGET)

    def _decide(self, budget: int) -> None:
        """Compare both planners, and let what they admit run."""
        if not self.world.queues:
            return
        snapshot, now_us = self.world.snapshot(), self.world.now_us
        plan = plan_cycle(snapshot, Policies(), now_us=now_us, budget=budget)
        naive = naive_plan(snapshot, Policies(), now_us=now_us, budget=budget)
        assert not differences(plan, naive)
        self.world.apply(plan.admits)
        # Now and then that is not written, and the holds of before go on.
        if budget != 1:
            self.world.node_holds = plan.node_holds


pytestmark = pytest.mark.timeout(60 + LIVES)
TestEngineMachine = EngineMachine.TestCase
TestEngineMachine.settings = settings(
    max_examples=LIVES,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
