"""Every crash point on the virtual cluster, which outlives the gateway in a file."""

import json
from pathlib import Path

import pytest

from gateway.core.vocabulary import JobState
from tests.acceptance.crash.manifests import a_gang, write_manifests
from tests.acceptance.crash.sweep import SWEEP, Deployment, survive

SCRIPT = "simulated.training-gateway.io/"


@pytest.mark.parametrize(("point", "end"), SWEEP)
def test_a_killed_gateway_goes_on_where_it_was(tmp_path: Path, point: str, end: JobState) -> None:
    state = tmp_path / "simulated.json"

    def gang(run_seconds: float) -> dict[str, object]:
        seconds = {"start-seconds": 0.05, "run-seconds": run_seconds, "delete-seconds": 0.05}
        return a_gang(annotations={SCRIPT + key: str(value) for key, value in seconds.items()})

    deployment = Deployment(
        url=f"sqlite:///{tmp_path / 'gateway.db'}",
        environment={"STATE_DIR": str(tmp_path), "BACKEND": "simulated"},
        manifests=write_manifests(tmp_path, short=gang(0.2), long=gang(600)),
        count_created=lambda: json.loads(state.read_text())["created"] if state.exists() else 0,
    )

    survive(deployment, point, end)
