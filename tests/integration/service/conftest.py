"""A gateway on each database, with a virtual cluster on a manual clock."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gateway.core.admission import CyclePlan, plan_pass
from gateway.db.engine import Database, open_database
from tests.service_world import Between, World, a_world


@pytest.fixture
def world(database: Database) -> World:
    """Give a leading gateway on two nodes, on each database."""
    return a_world(database)


@pytest.fixture
def shared(postgresql_url: str) -> Iterator[World]:
    """Give a leader on PostgreSQL, which other replicas may share."""
    database = open_database(postgresql_url)
    yield a_world(database)
    database.close()


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Between:
    """Let something happen once, after the next plan is made and before it is committed."""

    def arrange(act: Callable[[CyclePlan], object]) -> None:
        pending = [act]

        def plan_then_act(*arguments: Any) -> CyclePlan:
            plan = plan_pass(*arguments)
            while pending:
                pending.pop()(plan)
            return plan

        monkeypatch.setattr("gateway.service.cycle.plan_pass", plan_then_act)

    return arrange
