"""Whether this server can do its work now."""

from gateway.db.state import is_inventory_complete
from gateway.errors import DatabaseUnavailable
from gateway.schemas.views import Health
from gateway.service.context import Gateway


def readiness(gateway: Gateway) -> Health:
    """Check the database, the fleet and the cluster; submits need only the database."""
    checks = {"database": "ok", "inventory": "ok", "cluster": "ok"}
    try:
        with gateway.database.read() as connection:
            if not is_inventory_complete(connection):
                checks["inventory"] = "not read yet"
    except DatabaseUnavailable as error:
        checks["database"] = error.detail
    if not gateway.backend.is_reachable():
        checks["cluster"] = "does not answer; jobs are accepted and wait"
    checks["leader"] = "this process" if gateway.leadership.epoch else "another process"
    return Health(status="ok" if checks["database"] == "ok" else "unavailable", checks=checks)
