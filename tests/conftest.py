"""Fixtures that every tier may ask for; a test that does not ask pays nothing."""

import pytest

# Before anything imports them, so that a failing assertion in them explains itself.
pytest.register_assert_rewrite(
    "tests.contract.backends.suite_creating",
    "tests.contract.backends.suite_starting",
    "tests.contract.backends.suite_ending",
    "tests.contract.backends.steps",
)
pytest_plugins = ["tests.database_fixtures"]
