"""What every use case works with: the Gateway's parts, who calls, the clock, and the wake-up."""

import threading
import time
from dataclasses import dataclass, field
from typing import Protocol

from gateway.backends.base import Launch, LaunchBackend
from gateway.core.admission import QueueHold, Snapshot
from gateway.core.jobs.request import RequestClass
from gateway.core.mirror import Mirror
from gateway.core.vocabulary import Role
from gateway.db.engine import Database
from gateway.db.submissions import Remembered
from gateway.errors import Denied
from gateway.settings import Settings

EVERY_NAMESPACE = "*"
SYSTEM_ACTOR = "gateway"
LEAST_BUDGET = 100
"""Candidates that even the slowest cycle looks at."""


class Clock(Protocol):
    """Where the present instant comes from."""

    def now_us(self) -> int:
        """Give microseconds since the epoch, UTC."""


class SystemClock:
    """The machine's clock."""

    def now_us(self) -> int:
        """Give microseconds since the epoch, UTC."""
        return time.time_ns() // 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks."""

    name: str
    role: Role = Role.USER
    namespaces: tuple[str, ...] = ()

    @property
    def is_admin(self) -> bool:
        """Whether this caller administers the gateway."""
        return self.role is Role.ADMIN

    def may_use(self, namespace: str) -> bool:
        """Whether this caller may see and submit jobs there."""
        return not {EVERY_NAMESPACE, namespace}.isdisjoint(self.namespaces)

    def may_know(self, namespace: str) -> bool:
        """Whether this caller may read of what goes on there."""
        return self.is_admin or self.may_use(namespace)

    def visible_namespaces(self) -> tuple[str, ...] | None:
        """Namespaces to filter lists by; None is no filter."""
        return None if EVERY_NAMESPACE in self.namespaces else self.namespaces

    def visible_of(self, namespace: str) -> tuple[str, ...] | None:
        """The same for lists of one namespace only; an empty one asks for all."""
        if not namespace:
            return self.visible_namespaces()
        return (namespace,) if self.may_use(namespace) else ()

    def require_admin(self) -> None:
        """Refuse anybody but admins; raises Denied."""
        if not self.is_admin:
            raise Denied(
                f"{self.name} is no admin", hint="ask an admin, or use a token with role admin"
            )


class Wake:
    """Tells the ticker that a commit may have unblocked something."""

    def __init__(self) -> None:
        """Start asleep."""
        self._event = threading.Event()
        self._room = threading.Event()
        # A call that comes while both are cleared must leave both set, or none.
        self._both = threading.Lock()

    def set(self) -> None:
        """Ask for a cycle soon; many calls make one."""
        self._event.set()

    def hurry(self) -> None:
        """Ask for a cycle now, since room may have come free."""
        with self._both:
            self._event.set()
            self._room.set()

    def rest(self, seconds: float) -> None:
        """Let requests have the processor, but no longer than until room may have come free."""
        self._room.wait(seconds)

    def wait(self, timeout_seconds: float) -> bool:
        """Wait until somebody asks; True when somebody did."""
        asked = self._event.wait(timeout_seconds)
        # Cleared before the work and not after it, so a call during the work is not lost.
        with self._both:
            self._event.clear()
            self._room.clear()
        return asked


@dataclass(slots=True)
class Leadership:
    """This process's lease: its epoch and until when it surely holds, by the monotonic clock."""

    holder: str
    epoch: int | None = None
    valid_until: float = 0.0

    def outlives(self, seconds: float) -> bool:
        """Whether the lease still holds after a call of this length."""
        # Monotonic, because a wall clock that is set back would let a lost lease seem to hold.
        return self.epoch is not None and time.monotonic() + seconds < self.valid_until


@dataclass(slots=True)
class Pace:
    """How many candidates a cycle looks at in a second, measured as it goes."""

    per_second: float = 0.0

    def note(self, candidates: int, seconds: float) -> None:
        """Take one cycle into account; short ones say little and count for nothing."""
        if candidates and seconds > 0:
            fresh = candidates / seconds
            # A moving mean: one slow cycle (a full disk, a swapped page) must not starve the next
            # ones.
            self.per_second = 0.7 * self.per_second + 0.3 * fresh if self.per_second else fresh

    def budget(self, seconds: float, most: int) -> int:
        """Give the candidates that fit into this time, between LEAST_BUDGET and `most`."""
        if not self.per_second:
            return most
        return max(min(LEAST_BUDGET, most), min(most, int(self.per_second * seconds)))


@dataclass(slots=True, kw_only=True)
class Feasible:
    """Definitions and fleet at one moment, and which requests are known to fit into them, empty.

    A new one takes its place whenever definitions or fleet change.
    """

    view: Snapshot | None = None
    generation: int = -1
    possible: set[tuple[str, RequestClass]] = field(default_factory=set)
    """(queue, request)."""


@dataclass(slots=True, kw_only=True)
class MirrorState:
    """The warm mirror with the horizon of its last reading; used under its lock."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    mirror: Mirror = field(default_factory=Mirror)
    horizon: int = 0
    feasible: Feasible = field(default_factory=Feasible)
    barred: dict[tuple[str, str], QueueHold] | None = None
    """What was last stored of queues and users that admit nobody; None when nothing is known."""
    told_epoch: int | None = None
    """Epoch in which reasons were told last; others may have told them otherwise since."""
    pace: Pace = field(default_factory=Pace)


@dataclass(slots=True, kw_only=True)
class Gateway:
    """Everything that is built once; `bootstrap` does it."""

    database: Database
    backend: LaunchBackend
    settings: Settings
    leadership: Leadership
    clock: Clock = field(default_factory=SystemClock)
    wake: Wake = field(default_factory=Wake)
    mirror: MirrorState = field(default_factory=MirrorState)
    remembered: Remembered = field(default_factory=Remembered)
    """What submits need to know of the database."""
    launches: dict[int, Launch] = field(default_factory=dict)
    """By attempt's row id; what an attempt launches never changes."""
