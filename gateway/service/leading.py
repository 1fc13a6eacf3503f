"""Taking and keeping the lease: only the leader decides and launches."""

import time

from gateway.db import leases
from gateway.errors import DatabaseUnavailable
from gateway.service.context import Gateway

SAFETY_SECONDS = 1.0
"""Trust the lease a little shorter than the database does."""


def keep_leading(gateway: Gateway) -> bool:
    """Renew or try to take the lease; True while this process leads."""
    leadership = gateway.leadership
    seconds = gateway.settings.lease_seconds
    asked_at = time.monotonic()
    try:
        epoch = leases.acquire_or_renew(gateway.database, leadership.holder, seconds)
    except DatabaseUnavailable:
        # A database that is away for a moment ends nothing: the lease holds as long as it was
        # granted for.
        epoch = leadership.epoch if time.monotonic() < leadership.valid_until else None
        leadership.epoch = epoch
        return epoch is not None
    leadership.epoch = epoch
    # Counted from before the call: the database may have granted it at any moment since.
    leadership.valid_until = asked_at + seconds - SAFETY_SECONDS if epoch else 0.0
    return epoch is not None


def stop_leading(gateway: Gateway) -> None:
    """Give the lease up on a graceful stop."""
    gateway.leadership.epoch = None
    leases.release(gateway.database, gateway.leadership.holder)
