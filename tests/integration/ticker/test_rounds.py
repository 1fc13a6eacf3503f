"""Rounds by hand: in order, never two at once, only while leading, whatever one of them meets."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from gateway.core.vocabulary import JobState
from gateway.db.engine import Database, open_database
from gateway.errors import (
    ClusterUnreachable,
    DatabaseUnavailable,
    InvalidInput,
    StaleLeader,
    Unavailable,
)
from gateway.schemas.base import instant
from gateway.service.context import Gateway, Leadership
from gateway.service.leading import keep_leading
from gateway.settings import Settings
from gateway.ticker import Ticker
from gateway.ticker.rounds import Pulse, Rounds
from gateway.ticker.ticker import LEASE_RENEWALS, LEAST_PAUSE_SECONDS, RESTS_PER_WORK, STOP_SECONDS
from tests.service_world import World, a_world

MOST_ROUNDS = 60


@pytest.fixture
def database(sqlite_url: str) -> Iterator[Database]:
    """Give SQLite: what is tested here is when things are asked, not how they are stored."""
    opened = open_database(sqlite_url)
    yield opened
    opened.close()


@pytest.fixture
def world(database: Database) -> World:
    """Give a leading gateway whose finished objects go after ten seconds."""
    return a_world(database, keep_finished_seconds=10)


def make_all(rounds: Rounds, world: World, seconds: float = 1.0) -> None:
    world.clock.advance(seconds)
    for work in (rounds.lease, rounds.inventory, rounds.cycle, rounds.gangs, rounds.tidy):
        work()


def test_rounds_alone_bring_a_job_to_its_end_and_tidy_up_behind_it(world: World) -> None:
    rounds = Rounds(world.gateway)
    job_id = world.submit()
    for _ in range(MOST_ROUNDS):
        make_all(rounds, world)
        if world.state(job_id) is JobState.SUCCEEDED:
            break
    assert world.state(job_id) is JobState.SUCCEEDED
    assert (world.objects(), world.is_idle()) == (1, True)
    make_all(rounds, world, seconds=11)
    assert world.objects() == 0
    assert set(rounds.pulses) == {"lease", "inventory", "cycle", "launch", "reconcile", "tidy"}
    assert all(pulse.failures == 0 and pulse.ended_at > 0 for pulse in rounds.pulses.values())
    assert all(pulse.seconds >= 0 for pulse in rounds.pulses.values())


def test_who_does_not_lead_decides_launches_and_removes_nothing(world: World) -> None:
    rounds = Rounds(world.gateway)
    job_id = world.submit()
    world.gateway.leadership.epoch = None
    for work in (rounds.cycle, rounds.gangs, rounds.tidy):
        work()
    assert (world.state(job_id), world.held(), world.objects()) == (JobState.PENDING, 0, 0)
    rounds.lease()
    rounds.cycle()
    world.gateway.leadership.epoch, epoch = None, world.gateway.leadership.epoch
    rounds.gangs()
    assert (world.state(job_id), world.objects()) == (JobState.RESERVED, 0)
    world.gateway.leadership.epoch = epoch
    rounds.gangs()
    assert (world.state(job_id), world.objects()) == (JobState.LAUNCHING, 1)


def test_an_unreachable_cluster_is_a_reason_to_wait_and_no_failed_round(world: World) -> None:
    rounds = Rounds(world.gateway)
    job_id = world.submit()
    world.cluster.set_unreachable(True)
    for _ in range(3):
        make_all(rounds, world)
    assert world.job(job_id).reason == "ClusterUnreachable"
    assert all(pulse.failures == 0 for pulse in rounds.pulses.values())
    assert world.state(job_id) is JobState.RESERVED
    world.cluster.set_unreachable(False)
    for _ in range(MOST_ROUNDS):
        make_all(rounds, world)
    assert world.state(job_id) is JobState.SUCCEEDED


@pytest.mark.parametrize(
    ("error", "event", "failures", "leads"),
    [
        (StaleLeader("a newer one leads"), "leadership_lost", 0, False),
        (Unavailable("away"), "round_put_off", 1, True),
        (DatabaseUnavailable("away"), "round_put_off", 1, True),
        (ClusterUnreachable("away"), "round_put_off", 1, True),
        (InvalidInput("a stored row is wrong"), "round_failed", 1, True),
        (KeyError("bug"), "round_failed", 1, True),
        (RecursionError(), "round_failed", 1, True),
    ],
)
def test_what_a_round_raises_is_told_and_goes_no_further(
    world: World, error: Exception, event: str, failures: int, *, leads: bool
) -> None:
    def broken() -> object:
        raise error

    rounds = Rounds(world.gateway)
    with capture_logs() as told:
        rounds._make("launch", broken)
    assert [(line["event"], line["round"]) for line in told] == [(event, "launch")]
    assert rounds.pulses["launch"] == Pulse(failures=failures)
    assert (world.gateway.leadership.epoch is not None) is leads


def test_a_failure_leaves_the_time_of_the_last_good_end_alone(world: World) -> None:
    rounds = Rounds(world.gateway)
    rounds.cycle()
    good = rounds.pulses["cycle"].ended_at

    def broken() -> object:
        raise ValueError("bug")

    rounds._make("cycle", broken)
    assert (rounds.pulses["cycle"].ended_at, rounds.pulses["cycle"].failures) == (good, 1)
    rounds.cycle()
    assert rounds.pulses["cycle"].ended_at > good
    assert rounds.pulses["cycle"].failures == 0


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_cycle_that_was_due_and_failed_waits_for_the_steady_pace(
    world: World, monkeypatch: pytest.MonkeyPatch, *, is_lost: bool
) -> None:
    ticker, due_us = Ticker(world.gateway), world.gateway.clock.now_us() + 5_000_000
    world.submit(not_before_at=instant(due_us).isoformat())
    ticker.rounds.cycle()
    assert not ticker._is_due()
    world.clock.advance(5)
    assert ticker._is_due()

    def fail(gateway: Gateway) -> None:
        raise StaleLeader("gone", hint="") if is_lost else DatabaseUnavailable("gone", hint="")

    monkeypatch.setattr("gateway.ticker.rounds.run_cycle", fail)
    ticker.rounds.cycle()

    # Else it would be tried fifty times a second for as long as the failure lasts.
    assert not ticker._is_due()


def test_an_end_of_the_program_is_not_swallowed_and_frees_the_way(world: World) -> None:
    class Ending(Rounds):
        def _cycle(self) -> int:
            raise KeyboardInterrupt

    rounds = Ending(world.gateway)
    with pytest.raises(KeyboardInterrupt):
        rounds.cycle()
    assert not rounds._deciding.locked()


@pytest.mark.parametrize("name", ["cycle", "gangs"])
def test_two_rounds_of_a_kind_never_overlap(world: World, name: str) -> None:
    inside, most = 0, 0
    counting = threading.Lock()

    class Watched(Rounds):
        def _make(self, *_round: object) -> None:
            nonlocal inside, most
            with counting:
                inside += 1
                most = max(most, inside)
            time.sleep(0.005)
            with counting:
                inside -= 1

    rounds = Watched(world.gateway)
    works = [getattr(rounds, name)] * 3 + ([rounds.tidy] if name == "gangs" else [])
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_deciding_does_not_wait_for_the_cluster(world: World) -> None:
    rounds = Rounds(world.gateway)
    job_id = world.submit()
    with rounds._moving:  # a launch that hangs
        rounds.cycle()
    assert world.state(job_id) is JobState.RESERVED


class FakeTicker(Ticker):
    """A ticker with a pace of a cycle, and nothing to run."""

    def __init__(self, cycle_seconds: float) -> None:
        settings = Settings(cycle_seconds=cycle_seconds)
        self.gateway = type("Parts", (), {"settings": settings})()


@settings(deadline=None, max_examples=50)
@given(st.floats(0, 100), st.floats(0, 100), st.floats(0.05, 60))
def test_resting_grows_with_the_work_and_stays_within_its_bounds(
    short: float, long: float, cycle_seconds: float
) -> None:
    ticker = FakeTicker(cycle_seconds)
    short, long = sorted((short, long))
    rests = [ticker._pause_after(seconds, has_moved=False) for seconds in (short, long)]
    # Whoever came forward may have made room for the next one.
    assert ticker._pause_after(long, has_moved=True) == LEAST_PAUSE_SECONDS
    assert LEAST_PAUSE_SECONDS <= rests[0] <= rests[1] <= cycle_seconds
    free = [rest for rest in rests if LEAST_PAUSE_SECONDS < rest < cycle_seconds]
    expected = [seconds * RESTS_PER_WORK for seconds in (short, long)]
    assert all(any(rest == pytest.approx(each) for each in expected) for rest in free)


def test_room_that_comes_free_ends_a_rest(world: World) -> None:
    wake = world.gateway.wake
    wake.wait(0)
    wake.set()
    started = time.monotonic()
    wake.rest(0.05)
    assert time.monotonic() - started >= 0.05, "a submit alone does not end it"
    timer = threading.Timer(0.01, wake.hurry)
    timer.start()
    started = time.monotonic()
    wake.rest(60)
    assert time.monotonic() - started < 30
    assert wake.wait(0)
    timer.join()


def test_a_gang_that_gives_its_devices_back_ends_a_rest(world: World) -> None:
    job_id = world.submit(script={"run-seconds": 5})
    world.until(job_id, JobState.SUCCEEDED)
    started = time.monotonic()
    world.gateway.wake.rest(60)
    assert time.monotonic() - started < 30


def test_a_stopped_leader_makes_way_at_once(world: World, database: Database) -> None:
    ticker = Ticker(world.gateway)
    ticker.start()
    assert world.gateway.leadership.outlives(0)
    ticker.stop()
    stopped = world.gateway.leadership
    assert stopped.epoch is None
    world.gateway.leadership = Leadership(holder="another")
    assert keep_leading(world.gateway)


def test_stopping_twice_or_before_the_start_is_fine(world: World) -> None:
    ticker = Ticker(world.gateway)
    ticker.stop()
    begun = Ticker(world.gateway)
    begun.start()
    for _ in range(2):
        begun.stop()
    assert not any(thread.is_alive() for thread in begun._threads)


def test_stopping_leaves_no_thread_behind_and_makes_no_more_rounds(world: World) -> None:
    before = set(threading.enumerate())
    ticker = Ticker(world.gateway)
    ticker.start()
    assert "gateway-wake" in {thread.name for thread in threading.enumerate()}
    assert "gateway-listen" not in {thread.name for thread in threading.enumerate()}
    ticker.stop()
    assert set(threading.enumerate()) <= before
    job_id = world.submit()
    world.gateway.wake.set()
    assert world.state(job_id) is JobState.PENDING


def test_a_database_that_is_away_does_not_keep_a_server_from_stopping(
    world: World, tmp_path: Path
) -> None:
    ticker = Ticker(world.gateway)
    away = open_database("postgresql://127.0.0.1:1/nothing?connect_timeout=1")
    world.gateway.database = away
    with capture_logs() as told:
        started = time.monotonic()
        ticker._announce()
        ticker.stop()
        assert time.monotonic() - started < STOP_SECONDS
    assert [line["event"] for line in told] == ["wake_up_not_announced", "lease_not_released"]
    away.close()


def test_a_wake_up_line_that_breaks_is_told_and_ends_with_the_ticker(world: World) -> None:
    url = "postgresql://127.0.0.1:1/nothing?connect_timeout=1"
    world.gateway.settings = Settings(database_url=url)
    ticker = Ticker(world.gateway)
    with capture_logs() as told:
        listening = threading.Thread(target=ticker._listen)
        listening.start()
        deadline = time.monotonic() + 10
        while not told and time.monotonic() < deadline:
            time.sleep(0.01)
        ticker._stopping.set()
        listening.join(STOP_SECONDS)
    assert not listening.is_alive()
    assert told[0]["event"] == "wake_up_line_broken"


def test_a_lease_is_renewed_often_enough_to_lose_two_renewals() -> None:
    assert LEASE_RENEWALS == 3
    settings = Settings()
    spare = settings.lease_seconds - 2 * settings.lease_seconds / LEASE_RENEWALS
    assert spare >= settings.cluster_call_seconds
