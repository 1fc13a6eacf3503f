"""Who calls, by bearer token: a file of digests, compared in constant time.

One line a token: NAME ROLE NAMESPACES DIGEST, where NAMESPACES is a comma list or `*` and DIGEST
is the SHA-256 of the token in hex. Blank lines and lines that start with # are skipped. The file
never holds a token itself, and nothing here logs one.
"""

import hashlib
import secrets
import stat
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from hmac import compare_digest
from pathlib import Path
from typing import Protocol

from gateway.core.vocabulary import Role
from gateway.errors import StartupRefused, Unauthenticated, Unavailable
from gateway.service.context import Caller

DIGEST_LENGTH = 64
MAX_TOKEN_LENGTH = 4096
LINE_FORM = "NAME user|admin NAMESPACES|* SHA-256-IN-HEX"


class Authenticator(Protocol):
    """Tells who a bearer token belongs to."""

    def authenticate(self, token: str) -> Caller:
        """Give the caller; raises Unauthenticated for a token that is not accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEntry:
    """One accepted token."""

    digest: bytes
    caller: Caller


def new_token() -> str:
    """Give a fresh token of 256 random bits."""
    # The prefix lets scanners for leaked secrets know one when they see it.
    return "tgw_" + secrets.token_urlsafe(32)


def digest_of(token: str) -> str:
    """Give the digest that a token file holds for this token."""
    # One round without salt is enough: a token of 256 random bits is in no dictionary.
    return hashlib.sha256(token.encode()).hexdigest()


def token_line(token: str, caller: Caller) -> str:
    """Give the line of a token file that accepts this token for this caller."""
    names = ",".join(caller.namespaces)
    return f"{caller.name} {caller.role.value} {names} {digest_of(token)}"


def _require_digest(text: str) -> None:
    if len(text) != DIGEST_LENGTH or not set(text.lower()) <= set("0123456789abcdef"):
        raise ValueError("the digest is not 64 hex digits (sha256sum of the token)")


def read_line(line: str) -> TokenEntry:
    """Read one line of a token file.

    Raises:
        ValueError: not of the form NAME ROLE NAMESPACES DIGEST.
    """
    if "\N{REPLACEMENT CHARACTER}" in line:
        raise ValueError("this is not UTF-8")
    fields = line.split()
    if len(fields) != len(LINE_FORM.split()):
        raise ValueError(f"expected {LINE_FORM}")
    name, role, namespaces, digest = fields
    if role not in set(Role):
        raise ValueError(f"role {role!r} is not one of user, admin")
    _require_digest(digest)
    names = tuple(part for part in namespaces.split(",") if part)
    if not names:
        raise ValueError("no namespace; write * for all")
    return TokenEntry(
        digest=digest.lower().encode(), caller=Caller(name=name, role=Role(role), namespaces=names)
    )


def match(entries: Iterable[TokenEntry], token: str) -> Caller:
    """Give the caller of a token; looks at every entry, whichever fits.

    Raises:
        Unauthenticated: none fits.
    """
    # No early return and a comparison in constant time: how long it takes tells neither which
    # entry fits nor how much of a digest was guessed.
    found: Caller | None = None
    if 0 < len(token) <= MAX_TOKEN_LENGTH:
        seen = digest_of(token).encode()
        for entry in entries:
            if compare_digest(entry.digest, seen):
                found = entry.caller
    if found is None:
        raise Unauthenticated(
            "this token is not accepted", hint="check TRAINING_GATEWAY_TOKEN_FILE, or ask an admin"
        )
    return found


class StaticTokens:
    """Accepts a fixed set of tokens."""

    def __init__(self, callers: Iterable[tuple[str, Caller]]) -> None:
        """Take pairs of token and caller."""
        self._entries = tuple(
            TokenEntry(digest=digest_of(token).encode(), caller=caller) for token, caller in callers
        )

    def authenticate(self, token: str) -> Caller:
        """Give the caller; raises Unauthenticated for a token that is not accepted."""
        return match(self._entries, token)


class TokenFile:
    """Accepts the tokens of a file, read again whenever it changes.

    A line that turns bad later accepts nobody, and the others stay good: a slip of the pen must
    neither lock everybody out nor keep a removed token alive.
    """

    def __init__(self, path: Path) -> None:
        """Read the file; raises StartupRefused when it is missing, open to others or malformed."""
        self._path = path
        self._lock = threading.Lock()
        try:
            self._seen = self._stamp()
            self._entries, bad = _read(path)
        except OSError as error:
            raise StartupRefused(
                f"the token file {path} cannot be read: {error.strerror}",
                hint=f"make it, one line a token: {LINE_FORM}",
            ) from error
        if bad:
            raise StartupRefused(f"{path}: {bad[0]}", hint=f"write each line as: {LINE_FORM}")
        if path.stat().st_mode & stat.S_IWOTH:
            raise StartupRefused(f"anybody may write to {path}", hint=f"chmod 600 {path}")

    def authenticate(self, token: str) -> Caller:
        """Give the caller.

        Raises:
            Unauthenticated: the token is not accepted.
            Unavailable: the file has gone.
        """
        try:
            # Taken before reading. A change in between leaves an older stamp on newer lines, and
            # the next request reads once more; the other way round a change would be missed.
            stamp = self._stamp()
            if stamp != self._seen:
                with self._lock:
                    self._entries, _ = _read(self._path)
                    self._seen = stamp
        except OSError as error:
            raise Unavailable("tokens cannot be checked now", hint="try again later") from error
        return match(self._entries, token)

    def _stamp(self) -> tuple[int, int, int]:
        # A Secret that Kubernetes mounts changes by renaming a symbolic link: the new file is
        # another inode, even where a coarse clock gives it the same time.
        found = self._path.stat()
        return found.st_mtime_ns, found.st_size, found.st_ino


def _read(path: Path) -> tuple[tuple[TokenEntry, ...], list[str]]:
    """Give the good lines, and what is wrong with the others."""
    entries, bad = [], []
    # Never strictly: one letter saved in another encoding would lock everybody out.
    text = path.read_bytes().decode("utf-8-sig", errors="replace")
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            entries.append(read_line(line))
        except ValueError as error:
            bad.append(f"line {number}: {error}")
    return tuple(entries), bad
