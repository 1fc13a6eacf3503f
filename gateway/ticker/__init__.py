"""What makes the gateway move by itself: slow, steady ticks, and wake-ups right after commits.

The only user of APScheduler. Every rule lives in the service; here is only when it is asked.
"""

from gateway.ticker.ticker import Ticker

__all__ = ["Ticker"]
