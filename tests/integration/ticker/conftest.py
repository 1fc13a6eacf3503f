"""The same world for the rounds of a ticker."""

import pytest

from gateway.db.engine import Database
from tests.service_world import World, a_world


@pytest.fixture
def world(database: Database) -> World:
    """Give a leading gateway on two nodes, on each database."""
    return a_world(database)
