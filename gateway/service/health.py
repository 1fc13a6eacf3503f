"""Whether this server can do its work now."""

from gateway.db.state import is_inventory_complete
from gateway.errors import DatabaseUnavailable
from gateway.schemas.views import Health
from gateway.service.context import Gateway


def readiness(gateway: Gateway) -> Health:
    """Check the database, the fleet and the cluster; submits need only the database."""
    checks = {"database": "ok", "inventory": "ok", "cluster": "ok", **_stored(gateway)}
    if not gateway.backend.is_reachable():
        checks["cluster"] = "does not answer; jobs are accepted and wait"
    checks["leader"] = "this process" if gateway.leadership.epoch else "another process"
    return Health(status="ok" if checks["database"] == "ok" else "unavailable", checks=checks)


def _stored(gateway: Gateway) -> dict[str, str]:
    """Say what is wrong with the database or what it knows; empty when nothing is."""
    try:
        with gateway.database.read() as connection:
            is_complete = is_inventory_complete(connection)
    except DatabaseUnavailable as error:
        return {"database": error.detail}
    return {} if is_complete else {"inventory": "not read yet"}
