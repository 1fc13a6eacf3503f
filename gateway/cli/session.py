"""Which gateway to talk to: options, the environment, or the file that `gateway dev` wrote."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.sdk import Client


@dataclass(slots=True)
class Session:
    """Options given before the command."""

    url: str | None = None
    token_file: Path | None = None
    timeout_seconds: float = 30.0
    no_color: bool = False
    opened: "Client | None" = None

    def close(self) -> None:
        """Close the client of this invocation, if one was opened."""
        if self.opened is not None:
            self.opened.close()
            self.opened = None


SESSION = Session()


def client() -> "Client":
    """Give a client for this invocation."""
    from gateway.sdk import Client  # noqa: PLC0415 - keeps --help and completion fast

    if SESSION.opened is None:
        SESSION.opened = Client(
            url=SESSION.url, token_file=SESSION.token_file, timeout=SESSION.timeout_seconds
        )
    return SESSION.opened
