"""A virtual cluster: gangs that live and die by a script, on a controllable or the real clock.

For tests, replay and what-if. It runs nothing and waits for nothing: what a replica does at an
instant follows from the stored times and the script alone.
"""

from gateway.backends.simulated.backend import SimulatedBackend
from gateway.backends.simulated.clock import ManualClock
from gateway.backends.simulated.script import Outcome, Script

__all__ = ["ManualClock", "Outcome", "Script", "SimulatedBackend"]
