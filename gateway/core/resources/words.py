"""Amounts in words for people: "4 GPUs", "2.5 CPU cores", "16 GiB of memory"."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from gateway.core.resources.amounts import CPU, GPU, MEMORY, PODS, RDMA

_UNITS = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_NOUNS = {GPU: "GPU", RDMA: "NIC", PODS: "pod"}


def in_words(resource: str, amount: int) -> str:
    """Give an amount in base units as people write it, exactly."""
    if resource in _NOUNS:
        return counted(amount, _NOUNS[resource])
    if resource == CPU:
        return _cores(amount)
    if resource == MEMORY:
        return f"{_bytes(amount)} of memory"
    return f"{amount} {resource}"


def _cores(amount: int) -> str:
    whole, milli = divmod(amount, 1000)
    # Three digits and then without trailing zeros: 1050 millicores are 1.05, not 1.5.
    figure = f"{whole}.{milli:03d}".rstrip("0") if milli else str(whole)
    return f"{figure} CPU {'core' if amount == 1000 else 'cores'}"  # noqa: PLR2004 - milli


def instant_words(at_us: int) -> str:
    """Give an instant in microseconds since the epoch as RFC 3339 has it, UTC."""
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)
    return at.isoformat().replace("+00:00", "Z")


def counted(amount: int, noun: str) -> str:
    """Give a number with its noun: "1 job", "2 jobs"."""
    return f"{amount} {noun}" if amount == 1 else f"{amount} {noun}s"


def listed(parts: Iterable[str]) -> str:
    """Join words: "a", "a and b", "a, b and c"."""
    *first, last = list(parts) or [""]
    return f"{', '.join(first)} and {last}" if first else last


def _bytes(amount: int) -> str:
    # The largest unit that divides it: what is printed can be typed in again and is the same
    # amount.
    for size, unit in _UNITS:
        if amount and amount % size == 0:
            return f"{amount // size} {unit}"
    return f"{amount} bytes"
