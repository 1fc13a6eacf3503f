"""Where the gateway is and who asks: argument, then environment, then the file that `dev` writes.

A token file is read for every request, so a rotated token works at once. Nothing here prints one.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from gateway.core.vocabulary import ENVIRONMENT_PREFIX
from gateway.errors import GatewayError, InvalidInput, Unauthenticated

CONTEXT_FILE = "context.json"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def context_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Give the file in which `gateway dev` leaves its address and token."""
    folder = environment.get(f"{ENVIRONMENT_PREFIX}STATE_DIR")
    base = Path(folder) if folder else Path.home() / ".local" / "state" / "training-gateway"
    return base / CONTEXT_FILE


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Address and token, or the file that holds the token."""

    url: str
    _token: str = field(default="", repr=False)
    token_file: Path | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether the gateway runs on this machine; then no proxy is asked."""
        return urlsplit(self.url).hostname in LOOPBACK

    def token(self) -> str:
        """Give the token as it is now.

        Raises:
            Unauthenticated: there is none, or its file cannot be read.
        """
        if self._token:
            return self._token
        if self.token_file is None:
            raise Unauthenticated(
                "no token for the gateway",
                hint=f"set {ENVIRONMENT_PREFIX}TOKEN or {ENVIRONMENT_PREFIX}TOKEN_FILE",
            )
        return read_token(self.token_file)


def read_token(path: Path) -> str:
    """Give the token that a file holds.

    Raises:
        Unauthenticated: no such file, or it holds something else.
    """
    try:
        text = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Unauthenticated(
            f"the token file {path} cannot be read", hint="check the path and its permissions"
        ) from error
    if not text or len(text.split()) != 1:
        raise Unauthenticated(
            f"{path} does not hold one token",
            hint="a client's file holds the token alone; lists of digests are for the server",
        )
    return text


def find_credentials(
    url: str | None = None,
    token: str | None = None,
    token_file: str | Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Credentials:
    """Look up address and token; the first place that names one wins.

    Raises:
        InvalidInput: nothing says where the gateway is, or the address is no URL.
    """
    context = read_context(context_path(environment))
    named = url or environment.get(f"{ENVIRONMENT_PREFIX}URL")
    address = (named or context.get("url", "")).rstrip("/")
    if urlsplit(address).scheme not in {"http", "https"} or not urlsplit(address).hostname:
        raise InvalidInput(
            f"{address!r} is no address of a gateway" if address else "no gateway is known",
            value=address,
            allowed=("http://HOST:PORT", "https://HOST"),
            hint=f"start one with: gateway dev, or set {ENVIRONMENT_PREFIX}URL",
        )
    file = token_file or environment.get(f"{ENVIRONMENT_PREFIX}TOKEN_FILE")
    # The context's token belongs to the context's address and must not be sent anywhere else.
    spare = context.get("token", "") if address == context.get("url", "").rstrip("/") else ""
    if token or token_file:
        return _credentials(address, token, token_file if not token else None)
    given = environment.get(f"{ENVIRONMENT_PREFIX}TOKEN")
    return _credentials(address, given or ("" if file else spare), None if given else file)


def _credentials(address: str, token: str | None, file: str | Path | None) -> Credentials:
    return Credentials(url=address, _token=token or "", token_file=Path(file) if file else None)


def read_context(path: Path) -> dict[str, str]:
    """Give what `gateway dev` left, or nothing when it does not run."""
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise GatewayError(
            f"the context file {path} cannot be read", hint="remove it, or start gateway dev again"
        ) from error
    if not isinstance(found, dict):
        return {}
    return {str(key): str(value) for key, value in found.items()}
