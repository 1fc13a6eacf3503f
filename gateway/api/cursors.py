"""Cursors of paged lists: opaque, and refused when edited or used for another list.

The seal keeps clients from relying on what is inside and from mixing lists. It is no wall between
tenants: the service filters every page by the caller's namespaces, whatever the cursor says.
"""

import base64
import binascii
import hashlib
import hmac

from gateway.errors import InvalidInput

SEAL_LENGTH = 12
MAX_LENGTH = 400


class Cursors:
    """Seals and opens cursors with one key; replicas on one database share it."""

    def __init__(self, secret: str) -> None:
        """Derive the key from a secret that all replicas know."""
        # The label keeps this key apart from any other that may be derived from the same secret.
        self._key = hashlib.sha256(b"training-gateway cursor " + secret.encode()).digest()

    def seal(self, position: str, scope: str) -> str:
        """Give the cursor of a position in the list that `scope` names; empty stays empty."""
        if not position:
            return ""
        sealed = self._seal(position, scope) + position.encode()
        return base64.urlsafe_b64encode(sealed).decode().rstrip("=")

    def open(self, cursor: str, scope: str) -> str:
        """Give the position in a cursor; empty for none.

        Raises:
            InvalidInput: edited, or of another list, filter or caller.
        """
        if not cursor:
            return ""
        try:
            padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
            sealed = base64.b64decode(padded, altchars=b"-_", validate=True)
            position = sealed[SEAL_LENGTH:].decode()
        except (ValueError, binascii.Error) as error:
            raise _refusal(cursor) from error
        # Sealed again and compared as text: base64 has several spellings of some bytes (the last
        # letter's spare bits, the padding), and an edited cursor is no cursor of ours.
        if not hmac.compare_digest(self.seal(position, scope), cursor):
            raise _refusal(cursor)
        return position

    def _seal(self, position: str, scope: str) -> bytes:
        # No position holds a NUL, so the last one of a message is where its position begins.
        message = f"{scope}\0{position}".encode()
        return hmac.digest(self._key, message, "sha256")[:SEAL_LENGTH]


def _refusal(cursor: str) -> InvalidInput:
    return InvalidInput(
        "the cursor is not one that this list gave out",
        pointer="/cursor",
        value=cursor[:MAX_LENGTH],
        hint="take next_cursor of the page before, unchanged, with the same filters",
    )
