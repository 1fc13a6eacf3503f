"""Unit tests do no input or output: sockets are refused."""

import pytest
import pytest_socket


@pytest.fixture(autouse=True)
def _no_network(request: pytest.FixtureRequest) -> None:
    """Refuse every socket but those of a test that says `needs_loopback`."""
    if request.node.get_closest_marker("needs_loopback") is None:
        pytest_socket.disable_socket(allow_unix_socket=True)
