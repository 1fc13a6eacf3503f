"""Recognises texts that differ from an earlier one only by the job's name and key, byte for byte.

Under many submits reading a text is most of the work, and nearly all come from a few templates. One
is learned only after the same text with another name and key was read too and gave the same job
with these; from then on what stands around them says everything else.
"""

import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from gateway.manifests.naming import is_fitting_name
from gateway.manifests.remembering import Known, ReadJob, known, renamed, workers_of

MOST_TEMPLATES = 16
LONGEST_TEXT = 16 * 1024
MOST_PLACES = 4
LEARN_SECONDS = 0.05
"""Learning reads a text a second time, so it is not done for each of many unlike texts."""
# Nothing that these take is escaped in JSON, so that what stands there is what was meant. Whether
# it may be a name is judged by the reader's own rule; others only miss the short way.
_NAME = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
_KEY = re.compile(r"[-.:_A-Za-z0-9]+")
Context = tuple[object, ...]
"""Everything besides the text that reading depends on."""


class Reading(NamedTuple):
    """What reading a text gives: a job, and the idempotency key that stood beside it."""

    job: ReadJob
    key: str | None = None


Read = Callable[[str], Reading]


class _Cut(NamedTuple):
    """A text with holes."""

    holes: tuple[tuple[str, re.Pattern[str]], ...]
    """What stands before each hole, and what may stand in it: `_NAME` or `_KEY`."""
    tail: str

    def filled(self, name: str, key: str | None) -> str:
        """Give the text with these in its holes."""
        words = {_NAME: name, _KEY: key}
        return "".join(f"{before}{words[hole]}" for before, hole in self.holes) + self.tail


@dataclass(frozen=True, slots=True, kw_only=True)
class _Template:
    """A text without name and key, and the job without its name."""

    context: Context
    cut: _Cut
    known: Known
    workers: int

    def match(self, text: str, start: int) -> tuple[Reading, int] | None:
        """Give what stands at this place of a text, and where it ends."""
        place, name, key = start, "", None
        for before, hole in self.cut.holes:
            if not text.startswith(before, place):
                return None
            found = hole.match(text, place + len(before))
            if found is None:
                return None
            place = found.end()
            if hole is _NAME:
                name = found[0]
            else:
                key = found[0]
        if not text.startswith(self.cut.tail, place) or not is_fitting_name(name, self.workers):
            return None
        return Reading(ReadJob(self.known, name), key), place + len(self.cut.tail)


class Templates:
    """A bounded memory of templates; safe to share between threads."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._known: tuple[_Template, ...] = ()
        self._learned_at = 0.0

    def read(self, context: Context, text: str, read: Read) -> Reading:
        """Give what reading a whole text gives; raises what reading it raises."""
        found = self.find(context, text, 0)
        if found is not None and found[1] == len(text):
            return found[0]
        reading = read(text)
        self.learn(context, text, reading, read)
        return reading

    def find(self, context: Context, text: str, start: int) -> tuple[Reading, int] | None:
        """Give what a known template at this place of a text says, and where it ends."""
        for template in self._known:
            found = template.match(text, start)
            # Compared last: texts nearly always differ first.
            if found is not None and template.context == context:
                return found
        return None

    def learn(self, context: Context, text: str, reading: Reading, read: Read) -> None:
        """Learn from a text and what reading it gave, if it is time for that."""
        now = time.monotonic()
        if len(text) > LONGEST_TEXT or now - self._learned_at <= LEARN_SECONDS:
            return
        # Threads may learn at once and lose what one learned; the next text learns it again.
        self._learned_at = now
        spec, key = reading.job.spec, reading.key
        name, other_key = _unguessable(), None if key is None else _unguessable()
        for cut in _cuts(text, spec.name, key):
            try:
                changed = read(cut.filled(name, other_key))
            except ValueError:
                continue  # the name or the key stood for something else there
            if (changed.job.spec, changed.key) != (renamed(spec, name), other_key):
                continue
            found = _Template(context=context, cut=cut, known=known(spec), workers=workers_of(spec))
            # A hole may take less than stood in it: a template must at least know its own text.
            again = found.match(text, 0)
            if again is not None and again[0].job.spec == spec:
                self._known = (found, *self._known[: MOST_TEMPLATES - 1])
            return


def _unguessable() -> str:
    return f"x{secrets.token_hex(8)}"


def _cuts(text: str, name: str, key: str | None) -> Iterator[_Cut]:
    """Give every way in which name and key may be cut out of a text."""
    for name_place in _places(text, name):
        if key is None:
            yield _cut(text, [(name_place, len(name), _NAME)])
            continue
        for key_place in _places(text, key):
            places = (name_place, len(name), _NAME), (key_place, len(key), _KEY)
            yield _cut(text, sorted(places, key=lambda place: place[0]))


def _cut(text: str, places: Iterable[tuple[int, int, re.Pattern[str]]]) -> _Cut:
    holes, end = [], 0
    for start, length, pattern in places:
        holes.append((text[end:start], pattern))
        end = start + length
    return _Cut(tuple(holes), text[end:])


def _places(text: str, word: str) -> list[int]:
    """Give where a word stands in quotes; none when it stands there too often to try."""
    places = [found.start() + 1 for found in re.finditer(re.escape(f'"{word}"'), text)]
    return places if len(places) <= MOST_PLACES else []
