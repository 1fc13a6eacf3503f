"""Reads the fleet from the back end and brings the database to it."""

from gateway.db.engine import Writer
from gateway.db.fleet import sync_inventory
from gateway.db.leases import require_epoch
from gateway.db.state import set_inventory_complete
from gateway.errors import ClusterUnreachable
from gateway.service.context import Gateway
from gateway.service.mirroring import refresh_view


def sync(gateway: Gateway) -> int | None:
    """Sync once; gives how many nodes changed, None when not leading or out of reach."""
    epoch = gateway.leadership.epoch
    if epoch is None:
        refresh_view(gateway)  # submits are judged here too
        return None
    try:
        # Outside of any transaction: a cluster answers in seconds at times, and holds no row
        # meanwhile.
        seen = gateway.backend.inventory()
    except ClusterUnreachable:
        return None
    at_us = gateway.clock.now_us()

    def store(writer: Writer) -> int:
        # What a former leader saw may be older than what the present one has written.
        require_epoch(writer, epoch)
        changed = sync_inventory(writer, seen, at_us)
        set_inventory_complete(writer)
        return changed

    changed = gateway.database.run_write(store)
    # Every thirty seconds the same fleet: nobody is woken for it.
    if changed or gateway.mirror.feasible.view is None:
        refresh_view(gateway)
        gateway.wake.hurry()
    return changed
