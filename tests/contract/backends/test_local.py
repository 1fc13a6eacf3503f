"""The local back end passes the conformance suite with real programs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.backends.local_harness import LocalHarness, local_harness
from tests.contract.backends.suite import LaunchBackendSuite


class TestLocal(LaunchBackendSuite):
    """Every replica is a program of this machine."""

    @pytest.fixture
    def harness(self, tmp_path: Path) -> Iterator[LocalHarness]:
        """Give an empty state folder."""
        with local_harness(tmp_path) as harness:
            yield harness
