"""Every crash point on real processes, which outlive the gateway and are adopted again."""

from pathlib import Path

import pytest

from gateway.core.vocabulary import JobState
from tests.acceptance.crash.manifests import a_gang, write_manifests
from tests.acceptance.crash.sweep import SWEEP, Deployment, survive

PROGRAM = """
import os, time
with open({starts!r}, "a") as file:
    file.write(os.environ["RANK"] + chr(10))
time.sleep({seconds})
"""


@pytest.mark.parametrize(("point", "end"), SWEEP)
def test_each_rank_starts_once_however_often_the_gateway_dies(
    tmp_path: Path, point: str, end: JobState
) -> None:
    starts = tmp_path / "starts"

    def gang(seconds: float) -> dict[str, object]:
        program = PROGRAM.format(starts=str(starts), seconds=seconds)
        return a_gang(command=["python", "-c", program])

    def count_created() -> int:
        return len(list((tmp_path / "attempts").glob("attempts/team-a/*")))

    deployment = Deployment(
        url=f"sqlite:///{tmp_path / 'gateway.db'}",
        environment={
            "STATE_DIR": str(tmp_path),
            "BACKEND": "local",
            "ALLOW_LOCAL_BACKEND": "true",
            "ORPHAN_SECONDS": "30",
        },
        manifests=write_manifests(tmp_path, short=gang(0.3), long=gang(600)),
        count_created=count_created,
    )

    survive(deployment, point, end)

    ranks = starts.read_text().split() if starts.exists() else []
    assert len(ranks) == len(set(ranks)), "no rank was started twice"
    if end is JobState.SUCCEEDED:
        assert sorted(ranks) == ["0", "1"]
