"""Named places where a test can kill the process, to prove that every step survives it.

Inert unless TRAINING_GATEWAY_CRASH_AT names one, as NAME or NAME:COUNT for the nth pass.
"""

import os
import signal
from collections import Counter
from typing import Final

from gateway.core.vocabulary import ENVIRONMENT_PREFIX

VARIABLE: Final = f"{ENVIRONMENT_PREFIX}CRASH_AT"
CRASH_POINTS: Final = (
    "before_reserve",
    "in_reserve",
    "after_reserve",
    "after_intent",
    "after_create",
    "after_record",
    "after_hold",
    "after_hold_recorded",
    "after_unsuspend",
    "after_unsuspend_recorded",
    "after_open",
    "after_open_recorded",
    "after_running",
    "after_stop_recorded",
    "after_stop",
    "before_free",
    "in_free",
    "after_free",
)
_passed: Counter[str] = Counter()


def reach(name: str) -> None:
    """Die here, at once and without clean-up, when the environment says so."""
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return
    place, _, count = wanted.partition(":")
    if place != name:
        return
    _passed[name] += 1
    if _passed[name] >= int(count or 1):
        os.kill(os.getpid(), signal.SIGKILL)
