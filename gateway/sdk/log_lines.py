"""Lines of a rank as one iterator that outlives broken connections and restarts of the gateway.

It counts the lines it gave and asks the server to leave out as many after a break. With `tail` the
number of lines before is unknown; after a break it then looks for the lines it gave last.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from gateway.core.vocabulary import TERMINAL_STATES
from gateway.errors import GatewayError, NotFound
from gateway.schemas.views import JobView
from gateway.sdk.job_calls import JobCalls
from gateway.sdk.transport import is_transient

OVERLAP_LINES: Final = 20
"""So many of the last lines are compared to continue a tail."""
CATCH_UP_LINES: Final = 1000
"""So many lines are asked for to find them again."""
MAX_BREAKS: Final = 60
"""Breaks in a row without a single line before giving up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChoice:
    """Which lines."""

    rank: int = 0
    follow: bool = False
    tail: int | None = None
    attempt: int | None = None


@dataclass(slots=True)
class _Place:
    """How far one attempt was read."""

    attempt: int | None
    given: int = 0
    is_torn: bool = False
    """A tail was broken: from now on it is asked for again and again."""
    last: deque[str] = field(default_factory=lambda: deque(maxlen=OVERLAP_LINES))

    def passing(self, lines: Iterable[str]) -> Iterator[str]:
        """Give lines, and remember them as given."""
        for line in lines:
            self.given += 1
            self.last.append(line)
            yield line


def _is_final(error: GatewayError, breaks: int) -> bool:
    return not is_transient(error) or breaks > MAX_BREAKS


def log_lines(calls: JobCalls, job_id: str, choice: LogChoice) -> Iterator[str]:
    """Give the lines, without line ends.

    Raises:
        NotFound: no such job or rank; without `follow` also when nothing has started yet.
    """
    place, breaks = _Place(choice.attempt), 0
    if not choice.follow:
        yield from _read(calls, job_id, choice, place)
        return
    while True:
        # Looked at before reading: what ends meanwhile is read to its end in the next round.
        job = calls.get(job_id)
        if choice.attempt is None and job.attempt != place.attempt:
            # Another attempt has lines of its own; what was counted belongs to the one before.
            place = _Place(job.attempt)
        given = place.given
        try:
            if job.attempt:
                yield from _read(calls, job_id, choice, place)
            if _is_over(job, choice):
                return
        # A reserved rank has no lines yet; only of an ended job there will never be any.
        except NotFound:
            if _is_over(job, choice):
                raise
        except GatewayError as error:
            # A line in between proves that the gateway lives, so only breaks without one add up.
            breaks = 0 if place.given > given else breaks + 1
            if _is_final(error, breaks):
                raise
            place.is_torn = choice.tail is not None
        calls.wire.pause(breaks)


def _is_over(job: JobView, choice: LogChoice) -> bool:
    """Whether no line can come any more."""
    return job.state in TERMINAL_STATES or (choice.attempt or job.attempt) < job.attempt


def _read(calls: JobCalls, job_id: str, choice: LogChoice, place: _Place) -> Iterator[str]:
    """Read one answer to its end, beginning after what was given already."""
    params: dict[str, object] = {"rank": choice.rank, "attempt": place.attempt or None}
    if place.is_torn:
        with calls.logs(job_id, {**params, "tail": CATCH_UP_LINES}) as response:
            found = list(split_lines(response.iter_bytes()))
        # Read whole before giving any: the overlap is looked for from the last line back.
        yield from place.passing(after_overlap(found, list(place.last)))
        return
    params["follow"] = "true" if choice.follow else None
    if choice.tail is not None and not place.given:
        params["tail"] = choice.tail
    else:
        params["skip"] = place.given or None
    with calls.logs(job_id, params) as response:
        yield from place.passing(split_lines(response.iter_bytes()))


def split_lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Give lines that end in a line feed; a progress bar's carriage returns stay inside."""
    rest = b""
    # Not `str.splitlines`, which also cuts at \r, \x0b, \x85, U+2028 and more; progress bars and
    # tokenisers print those inside one line. Decoding per line keeps split characters whole.
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace")
    if rest:
        yield rest.decode(errors="replace")


def after_overlap(found: list[str], last: list[str]) -> list[str]:
    """Give the lines of `found` that come after those given last; all when they are not there."""
    # From the end, because lines repeat ("step done"): the last match loses at most repeated lines,
    # the first one would give some of them twice.
    for end in range(len(found), 0, -1):
        length = min(end, len(last))
        if length and found[end - length : end] == last[-length:]:
            return found[end:]
    return found
