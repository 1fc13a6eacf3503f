"""Fixtures that every tier may ask for; a test that does not ask pays nothing."""

pytest_plugins = ["tests.database_fixtures"]
