"""A clock that moves only when it is told to."""


class ManualClock:
    """Call it for the time in seconds; `advance` moves it forwards."""

    def __init__(self, start_seconds: float = 0.0) -> None:
        """Start at this many seconds."""
        self._now = start_seconds

    def __call__(self) -> float:
        """Give the time in seconds."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move forwards; raises ValueError for a negative step."""
        # Stored times would lie in the future, and what runs would be pending again.
        if seconds < 0:
            raise ValueError(f"a clock does not go back, not by {seconds} s either")
        self._now += seconds
