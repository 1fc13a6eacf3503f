"""A gateway over each database, for use cases that need no back end."""

import pytest

from gateway.backends.simulated import ManualClock, SimulatedBackend
from gateway.db.engine import Database
from gateway.service.context import Gateway, Leadership
from gateway.settings import Settings


@pytest.fixture
def gateway(database: Database) -> Gateway:
    """Give a gateway that nobody ticks, on an empty fleet."""
    return Gateway(
        database=database,
        backend=SimulatedBackend((), clock=ManualClock(1_700_000_000.0)),
        settings=Settings(),
        leadership=Leadership(holder="test"),
    )
