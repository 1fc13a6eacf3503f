"""Reads a rank's log file as lines, and follows it until the rank has ended."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

POLL_SECONDS: Final = 0.1


def last_lines(path: Path, tail: int | None) -> Iterator[str]:
    """Give the lines that are there, or the last `tail` of them; none without a file."""
    if not path.exists():
        return iter(())
    with path.open("rb") as stream:
        return map(_text, deque(stream, maxlen=tail))


def follow_lines(path: Path, tail: int | None, has_ended: Callable[[], bool]) -> Iterator[str]:
    """Give lines as they come until `has_ended` is true and everything was read."""
    while not path.exists():
        if has_ended():
            return
        time.sleep(POLL_SECONDS)
    with path.open("rb") as stream:
        # Asked before reading: what is written until the end is read after it.
        is_over = has_ended()
        start, rest = _whole_lines(stream, b"")
        yield from deque(start, maxlen=tail)
        while not is_over:
            time.sleep(POLL_SECONDS)
            is_over = has_ended()
            lines, rest = _whole_lines(stream, rest)
            yield from lines
        if rest:
            yield _text(rest)


def _whole_lines(stream: BinaryIO, begun: bytes) -> tuple[list[str], bytes]:
    """Read to the end; gives whole lines and the begun last one."""
    # A line is given once its end is there: half of one would become two.
    *whole, rest = (begun + stream.read()).split(b"\n")
    return list(map(_text, whole)), rest


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r\n")
