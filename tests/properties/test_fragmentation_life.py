"""Under `fragmentation` too, a state that lives for long decides what one made afresh decides.

What is typical changes with every job, and what is remembered of nodes must follow.
"""

from collections import Counter
from collections.abc import Sequence

from hypothesis import given, settings

from gateway.core.admission import Admit, Policies, plan_cycle, plan_pass
from gateway.core.mirror import Mirror, MirrorRows
from tests.properties.strategies import seeds
from tests.properties.test_warm_engine import BUDGET, LIVES, STEPS, Life, placed

POLICIES = Policies(placement="fragmentation")
LATEST = 12
"""Jobs that count as recent; so few, that what is typical changes all the time."""
usual = settings(max_examples=LIVES // 2, deadline=None)


class TypicalLife(Life):
    """A life in which requests of late are told to whoever reads."""

    def __init__(self, seed: int, *, tells_recent: bool) -> None:
        super().__init__(seed)
        self.mirror = Mirror(POLICIES)
        self.tells_recent = tells_recent

    def recent(self) -> MirrorRows:
        latest = sorted(self.rows.jobs)[-LATEST:] if self.tells_recent else []
        return MirrorRows(recent=Counter(self.rows.jobs[job_id].class_id for job_id in latest))

    def read(self) -> None:
        super().read()
        self.mirror.apply(self.recent())

    def fresh(self) -> Mirror:
        mirror = Mirror(POLICIES)
        mirror.apply(self.rows.everything())
        mirror.apply(self.recent())
        return mirror


def cold_plan(life: Life) -> Sequence[Admit]:
    """Decide on the mirror's state as a value."""
    return plan_cycle(life.mirror.snapshot(1), POLICIES, life.now_us, BUDGET).admits


def live(seed: int, *, tells_recent: bool) -> int:
    """Hold a long life against fresh starts; gives how many gangs were admitted."""
    life, admitted = TypicalLife(seed, tells_recent=tells_recent), 0
    life.read()
    for _ in range(STEPS):
        fresh, expected = life.fresh(), cold_plan(life)
        plan = life.plan()
        warm = plan.admits
        anew = plan_pass(fresh.state, 1, life.now_us, BUDGET).admits
        assert placed(warm) == placed(expected)
        assert placed(warm) == placed(anew)
        admitted += len(warm)
        life.commit(plan, life.some_of(warm))
        life.step()
    return admitted


@given(seeds)
@usual
def test_a_long_life_decides_like_a_fresh_start_by_what_was_asked_of_late(seed: int) -> None:
    live(seed, tells_recent=True)


@given(seeds)
@usual
def test_a_long_life_decides_like_a_fresh_start_by_who_waits(seed: int) -> None:
    live(seed, tells_recent=False)


def test_such_lives_start_gangs() -> None:
    assert sum(live(seed, tells_recent=True) for seed in range(4, 10)) > 20
