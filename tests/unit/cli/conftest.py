"""The terminal for every test of commands."""

from tests.unit.cli.fake_session import terminal

__all__ = ["terminal"]
