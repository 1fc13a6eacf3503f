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
    # Kept out of repr, which ends up in notebooks, tracebacks and bug reports.
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
        token = self._token or self._token_of_file()
        # The HTTP client would fail with an encoding error that says nothing of tokens.
        if not (token.isascii() and token.isprintable()):
            raise Unauthenticated(
                "the token holds characters that no header can carry",
                hint="copy it again; a token is letters, digits, dashes and underscores",
            )
        return token

    def _token_of_file(self) -> str:
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
    # The server's own file (name, role, namespaces, digest) is what people point at by mistake;
    # sent as a token it would only come back as "not accepted".
    if not text or len(text.split()) != 1:
        raise Unauthenticated(
            f"{path} does not hold one token",
            hint="a client's file holds the token alone; lists of digests are for the server",
        )
    return text


def _require_address(address: str) -> None:
    if not _is_address(address):
        raise InvalidInput(
            f"{address!r} is no address of a gateway" if address else "no gateway is known",
            value=address,
            allowed=("http://HOST:PORT", "https://HOST"),
            hint=f"start one with: gateway dev, or set {ENVIRONMENT_PREFIX}URL",
        )


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
    # Variables that were filled from a file by a shell or a Secret often end in a line feed.
    address = (named or context.get("url", "")).strip().rstrip("/")
    _require_address(address)
    # An address given by hand must not go with the token of another gateway: an explicit token or
    # file wins whole, and only what is not given is looked up.
    file = token_file or environment.get(f"{ENVIRONMENT_PREFIX}TOKEN_FILE")
    # The context's token belongs to the context's address and must not be sent anywhere else.
    spare = context.get("token", "") if address == context.get("url", "").rstrip("/") else ""
    if token or token_file:
        return _credentials(address, token, token_file if not token else None)
    given = environment.get(f"{ENVIRONMENT_PREFIX}TOKEN", "").strip()
    return _credentials(address, given or ("" if file else spare), None if given else file)


def _is_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        # urlsplit takes any text as a port and complains only when it is asked for the number.
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        return False
    is_web = parts.scheme in {"http", "https"} and bool(parts.hostname)
    return is_web and has_port and not any(map(str.isspace, address))


def _credentials(address: str, token: str | None, file: str | Path | None) -> Credentials:
    return Credentials(url=address, _token=token or "", token_file=Path(file) if file else None)


def read_context(path: Path) -> dict[str, str]:
    """Give what `gateway dev` left, or nothing when it does not run."""
    try:
        # No existence check before reading: `gateway dev` may stop and remove the file in between.
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
