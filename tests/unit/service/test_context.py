"""Callers, wake-ups, pace and leases, without a database."""

import threading
import time

import pytest

from gateway.core.vocabulary import Role
from gateway.errors import Denied
from gateway.service.context import Caller, Leadership, Pace, SystemClock, Wake
from gateway.service.crash_points import CRASH_POINTS, VARIABLE, reach


def test_a_caller_uses_its_own_namespaces_or_all() -> None:
    anna = Caller(name="anna", namespaces=("a", "b"))
    assert anna.may_use("a")
    assert not anna.may_use("c")
    assert anna.visible_namespaces() == ("a", "b")
    assert Caller(name="root", namespaces=("*",)).may_use("anything")
    assert Caller(name="root", namespaces=("*",)).visible_namespaces() is None


def test_only_admins_pass_the_admins_door() -> None:
    Caller(name="root", role=Role.ADMIN).require_admin()
    with pytest.raises(Denied):
        Caller(name="anna").require_admin()


def test_many_wake_ups_make_one() -> None:
    wake = Wake()
    assert not wake.wait(0)
    wake.set()
    wake.set()
    assert wake.wait(0)
    assert not wake.wait(0)


def test_a_wake_up_from_another_thread_is_heard_at_once() -> None:
    wake = Wake()
    threading.Timer(0.01, wake.set).start()
    assert wake.wait(5)


def test_the_budget_follows_the_measured_pace() -> None:
    pace = Pace()
    assert pace.budget(1.0, 5000) == 5000, "nothing measured yet"
    pace.note(1000, 0.5)
    assert pace.budget(1.0, 5000) == 2000
    pace.note(10, 1.0)
    assert 100 <= pace.budget(1.0, 5000) < 2000
    assert Pace(1e9).budget(1.0, 5000) == 5000
    assert Pace(1.0).budget(1.0, 5000) == 100, "even the slowest looks at some"
    assert Pace(1.0).budget(1.0, 10) == 10


def test_a_lease_outlives_only_what_ends_before_it() -> None:
    now = time.monotonic()
    assert Leadership("me", epoch=1, valid_until=now + 10).outlives(5)
    assert not Leadership("me", epoch=1, valid_until=now + 4).outlives(5)
    assert not Leadership("me", epoch=None, valid_until=now + 10).outlives(0)


def test_the_system_clock_gives_microseconds() -> None:
    assert abs(SystemClock().now_us() / 1_000_000 - time.time()) < 5


def test_crash_points_are_inert_unless_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    for point in CRASH_POINTS:
        reach(point)
    monkeypatch.setenv(VARIABLE, "no_such_point")
    for point in CRASH_POINTS:
        reach(point)
    monkeypatch.setenv(VARIABLE, f"{CRASH_POINTS[0]}:2")
    reach(CRASH_POINTS[0])  # the first of two passes
    assert VARIABLE.endswith("CRASH_AT")
