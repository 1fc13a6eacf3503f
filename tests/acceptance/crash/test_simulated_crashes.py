"""Every crash point on the virtual cluster, which outlives the gateway in a file."""

import json
from pathlib import Path

import pytest

from gateway.core.vocabulary import JobState
from tests.acceptance.crash.manifests import a_gang, write_manifests
from tests.acceptance.crash.sweep import SWEEP, Deployment, survive

SCRIPT = "simulated.training-gateway.io/"


def on_virtual_cluster(folder: Path, url: str, **settings: str) -> Deployment:
    """Give a gateway whose cluster is a file in this folder."""
    state = folder / "simulated.json"

    def gang(run_seconds: float) -> dict[str, object]:
        seconds = {"start-seconds": 0.05, "run-seconds": run_seconds, "delete-seconds": 0.05}
        return a_gang(annotations={SCRIPT + key: str(value) for key, value in seconds.items()})

    return Deployment(
        url=url,
        environment={"STATE_DIR": str(folder), "BACKEND": "simulated", **settings},
        manifests=write_manifests(folder, short=gang(0.2), long=gang(600)),
        count_created=lambda: json.loads(state.read_text())["created"] if state.exists() else 0,
    )


@pytest.mark.parametrize(("point", "end"), SWEEP)
def test_a_killed_gateway_goes_on_where_it_was(tmp_path: Path, point: str, end: JobState) -> None:
    survive(on_virtual_cluster(tmp_path, f"sqlite:///{tmp_path / 'gateway.db'}"), point, end)


@pytest.mark.parametrize("point", ["in_reserve", "after_reserve", "after_create", "in_free"])
def test_another_replica_goes_on_once_the_lease_has_run_out(
    tmp_path: Path, postgresql_url: str, point: str
) -> None:
    short_lease = {"LEASE_SECONDS": "3", "CLUSTER_CALL_SECONDS": "0.9"}
    survive(on_virtual_cluster(tmp_path, postgresql_url, **short_lease), point, JobState.SUCCEEDED)
