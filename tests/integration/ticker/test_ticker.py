"""The gateway moves by itself: at once after a commit, by its ticks, and across replicas."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.backends.simulated import Script, SimulatedBackend
from gateway.backends.virtual_fleet import virtual_fleet
from gateway.core.vocabulary import JobState
from gateway.db.engine import open_database
from gateway.db.notify import Listener, announce
from gateway.errors import ClusterUnreachable, DatabaseUnavailable, StaleLeader
from gateway.service.context import Gateway, Leadership
from gateway.service.jobs import get_job
from gateway.service.submit import submit
from gateway.settings import Settings
from gateway.ticker import Ticker
from gateway.ticker.rounds import Rounds
from tests.service_world import ADMIN, ANNA, World, a_spec

QUICK = Script(start_seconds=0.05, run_seconds=0.2)
NEVER = 3600.0
"""A pace that never comes within a test."""
Start = Callable[..., Ticker]


@pytest.fixture
def start(database_url: str, tmp_path: Path) -> Iterator[Start]:
    """Give a way to start tickers of replicas that share a database and a cluster."""
    running: list[Ticker] = []

    def begin(holder: str = "one", **settings: Any) -> Ticker:
        cluster = SimulatedBackend(virtual_fleet("1xdgx-h100"), tmp_path / "c.json", defaults=QUICK)
        chosen = Settings(database_url=database_url, **settings)
        database = open_database(database_url)
        leadership = Leadership(holder=holder)
        ticker = Ticker(
            Gateway(database=database, backend=cluster, settings=chosen, leadership=leadership)
        )
        ticker.start()
        running.append(ticker)
        return ticker

    yield begin
    for ticker in running:
        ticker.stop()
        ticker.gateway.database.close()


def wait_for(condition: Callable[[], bool], seconds: float = 15) -> None:
    """Wait until something is so; fail when it does not come."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come in time"
        time.sleep(0.02)


def is_in(gateway: Gateway, job_id: str, *states: JobState) -> Callable[[], bool]:
    return lambda: get_job(gateway, ADMIN, job_id).state in states


def test_a_job_runs_to_its_end_by_itself(start: Start) -> None:
    gateway = start(launch_seconds=0.05).gateway
    job_id = submit(gateway, ANNA, a_spec(), None).job.id

    wait_for(is_in(gateway, job_id, JobState.SUCCEEDED))


def test_a_submit_is_decided_on_at_once_without_waiting_for_a_tick(start: Start) -> None:
    gateway = start(launch_seconds=NEVER, cycle_seconds=NEVER).gateway
    wait_for(lambda: gateway.mirror.feasible.view is not None)
    job_id = submit(gateway, ANNA, a_spec(), None).job.id

    wait_for(is_in(gateway, job_id, JobState.LAUNCHING))


def test_a_lost_wake_up_is_made_good_by_the_ticks(start: Start) -> None:
    gateway = start(launch_seconds=0.05, cycle_seconds=0.1).gateway
    gateway.wake.set = lambda: None  # type: ignore[method-assign]  # every wake-up is lost
    job_id = submit(gateway, ANNA, a_spec(), None).job.id

    wait_for(is_in(gateway, job_id, JobState.SUCCEEDED))


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_submit_to_another_replica_wakes_the_leader(start: Start) -> None:
    leader = start("one", launch_seconds=NEVER, cycle_seconds=NEVER).gateway
    wait_for(lambda: leader.mirror.feasible.view is not None)
    other = start("two", launch_seconds=NEVER, cycle_seconds=NEVER).gateway
    assert other.leadership.epoch is None
    job_id = submit(other, ANNA, a_spec(), None).job.id

    wait_for(is_in(other, job_id, JobState.LAUNCHING))


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_another_replica_takes_over_when_the_leader_stops(start: Start) -> None:
    first = start("one", launch_seconds=0.05)
    other = start("two", launch_seconds=0.05, lease_seconds=3, cluster_call_seconds=0.9).gateway
    assert other.leadership.epoch is None
    first.stop()

    wait_for(lambda: other.leadership.epoch is not None)
    job_id = submit(other, ANNA, a_spec(), None).job.id
    wait_for(is_in(other, job_id, JobState.SUCCEEDED))


def test_a_wake_up_is_heard_on_its_own_connection(postgresql_url: str) -> None:
    database = open_database(postgresql_url)
    with Listener(postgresql_url) as listener:
        assert not listener.wait(0.01)
        announce(database)
        assert listener.wait(5)
    database.close()


def test_nobody_listens_where_no_server_is() -> None:
    with pytest.raises(DatabaseUnavailable):
        Listener("postgresql://127.0.0.1:1/nothing?connect_timeout=1")


def test_on_sqlite_there_is_nobody_else_to_wake(sqlite_url: str) -> None:
    database = open_database(sqlite_url)
    announce(database)
    database.close()


@pytest.mark.parametrize("error", [ValueError("bug"), ClusterUnreachable("down")])
def test_a_round_that_fails_is_counted_and_the_next_one_is_made(
    world: World, error: Exception
) -> None:
    rounds = Rounds(world.gateway)

    def broken() -> object:
        raise error

    rounds._make("cycle", broken)
    rounds._make("cycle", broken)
    assert rounds.pulses["cycle"].failures == 2
    rounds.cycle()
    assert rounds.pulses["cycle"].failures == 0
    assert rounds.pulses["cycle"].ended_at > 0


def test_a_leader_that_learns_of_another_stands_down(world: World) -> None:
    rounds = Rounds(world.gateway)

    def fenced() -> object:
        raise StaleLeader("epoch 1 no longer leads")

    rounds._make("launch", fenced)
    assert world.gateway.leadership.epoch is None
    rounds.gangs()
    rounds.tidy()
