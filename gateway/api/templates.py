"""Recognises bodies that differ from an earlier one only by the job's name, byte for byte.

Under many submits reading a body is most of the work, and nearly all bodies come from a few
templates. A body is learned only after the same bytes with another name were read too and gave the
same job with that name; from then on its head and tail say everything but the name.
"""

import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from gateway.core.jobs.request import RequestClass
from gateway.manifests.naming import is_fitting_name
from gateway.manifests.remembering import Known, ReadJob, known, renamed, workers_of
from gateway.service.prepared import Prepared, prepare

MOST_TEMPLATES = 16
LONGEST_BODY = 16 * 1024
MOST_PLACES = 4
LEARN_SECONDS = 0.05
"""Learning reads a body a second time, so it is not done for each of many unlike bodies."""
_NAME = re.compile(rb"[a-z][-a-z0-9]{0,62}")
Context = tuple[object, ...]
"""Everything besides the body that reading depends on."""
Read = Callable[[bytes], ReadJob]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Template:
    """A body without its name, and the job without its name."""

    context: Context
    head: bytes
    tail: bytes
    known: Known
    request: RequestClass
    workers: int

    def name_in(self, context: Context, body: bytes) -> str | None:
        """Give the name in a body of this template; None for any other body."""
        if not (body.startswith(self.head) and body.endswith(self.tail)):
            return None
        name = body[len(self.head) : len(body) - len(self.tail)]
        if self.context != context or not _NAME.fullmatch(name):
            return None
        text = name.decode()
        return text if is_fitting_name(text, self.workers) else None

    def prepared(self, name: str) -> Prepared:
        """Give the job of this template with that name."""
        job = self.known.named(name)
        return Prepared(spec=job.spec, request=self.request, digest=job.digest)


class Templates:
    """A bounded memory of templates; safe to share between threads."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._known: tuple[_Template, ...] = ()
        self._learned_at = 0.0

    def read(self, context: Context, body: bytes, read: Read) -> Prepared:
        """Give what reading the body gives; raises what reading it raises."""
        for template in self._known:
            name = template.name_in(context, body)
            if name is not None:
                return template.prepared(name)
        prepared = prepare(read(body))
        now = time.monotonic()
        if len(body) <= LONGEST_BODY and now - self._learned_at > LEARN_SECONDS:
            self._learned_at = now
            self._learn(context, body, prepared, read)
        return prepared

    def _learn(self, context: Context, body: bytes, prepared: Prepared, read: Read) -> None:
        other = f"x{secrets.token_hex(8)}"
        name = prepared.spec.name.encode()
        for place in _places(body, name):
            head, tail = body[: place + 1], body[place + 1 + len(name) :]
            try:
                changed = read(head + other.encode() + tail).spec
            except ValueError:
                continue  # the name stood for something else there
            if changed != renamed(prepared.spec, other):
                continue
            found = _Template(
                context=context,
                head=head,
                tail=tail,
                known=known(prepared.spec),
                request=prepared.request,
                workers=workers_of(prepared.spec),
            )
            if found.prepared(prepared.spec.name) == prepared:
                self._known = (found, *self._known[: MOST_TEMPLATES - 1])
            return


def _places(body: bytes, name: bytes) -> list[int]:
    """Give where the name stands in quotes; none when it stands there too often to try."""
    places = [found.start() for found in re.finditer(re.escape(b'"' + name + b'"'), body)]
    return places if len(places) <= MOST_PLACES else []
