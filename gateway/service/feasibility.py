"""Refuses what could never run, even on the whole known fleet standing empty.

Most submits ask what was asked before, so answers are remembered until definitions or fleet change.
"""

from gateway.core.admission import Snapshot, never_fits
from gateway.core.jobs.request import RequestClass
from gateway.errors import NeverFits
from gateway.service.context import Feasible, Gateway
from gateway.service.mirroring import refresh_view

MOST_REMEMBERED = 10_000


def is_known_to_fit(gateway: Gateway, queue: str, request: RequestClass) -> bool:
    """Whether this was judged before; needs no database and no thought."""
    return (queue, request) in gateway.mirror.feasible.possible


def require_possible(gateway: Gateway, queue: str, request: RequestClass) -> None:
    """Judge a request; a refusal is made only by what the database holds now.

    Call it outside of transactions.

    Raises:
        NeverFits: no place of the fleet, or no quota, could ever hold the gang.
    """
    if _fits(gateway.mirror.feasible, queue, request) or _fits(
        fresh := refresh_view(gateway), queue, request
    ):
        return
    view = fresh.view
    impossible = None if view is None else never_fits(view, queue, request)
    causes = impossible.causes if impossible else ()
    raise NeverFits(
        "this job can never run: " + "; ".join(cause.detail for cause in causes),
        pointer="/spec/pytorchReplicaSpecs",
        hint="ask for less per pod, loosen the pair rule or topology, or add nodes or quota",
    )


def _fits(feasible: Feasible, queue: str, request: RequestClass) -> bool:
    view = feasible.view
    if view is None:
        return False
    if _knows(view, queue) and never_fits(view, queue, request) is not None:
        return False
    if len(feasible.possible) >= MOST_REMEMBERED:
        feasible.possible.clear()
    feasible.possible.add((queue, request))
    return True


def _knows(view: Snapshot, queue: str) -> bool:
    return any(known.name == queue for known in view.queues)
