"""Caps of a queue: plain numbers that its gangs do not go beyond, whatever quota allows.

Nothing here counts; whoever asks brings the counts of the moment, because a pass changes them.
"""

from dataclasses import dataclass

from gateway.core.queues.definitions import Caps


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveUse:
    """What gangs of a queue hold at a moment."""

    running_jobs: int
    """Of the whole queue."""
    user_running_jobs: int
    """Of the user whose job is judged."""
    user_gpus: int
    """Of the same user, without the job that is judged."""


def over_cap(caps: Caps, use: LiveUse, gpus: int) -> str:
    """Name the first cap that a job of so many GPUs would break by starting; empty when none."""
    # This one first, because no release will ever lift it.
    if gpus > caps.gpus_per_job:
        return "gpus_per_job"
    if use.running_jobs >= caps.running_jobs:
        return "running_jobs"
    if use.user_running_jobs >= caps.user_running_jobs:
        return "user_running_jobs"
    # With the job counted in, unlike the caps on jobs: 6 of 8 GPUs leave room for 2, not for 4.
    if use.user_gpus + gpus > caps.user_gpus:
        return "user_gpus"
    return ""
