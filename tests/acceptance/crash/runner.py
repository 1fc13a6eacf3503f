"""One gateway without HTTP, to be killed: python -m tests.acceptance.crash.runner MANIFEST END.

Settings come from the environment as for any gateway. It submits the manifest under one fixed key,
makes the passes that the ticker would make, cancels the job once it runs when END is cancelled, and
ends with 0 when the job came to END, with 3 when it did not in time.
"""

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from gateway.bootstrap import build_gateway
from gateway.core.vocabulary import TERMINAL_STATES, JobState, Role
from gateway.manifests import read_jobs
from gateway.schemas.views import JobView
from gateway.service.context import Caller, Gateway
from gateway.service.cycle import run_cycle
from gateway.service.inventory import sync
from gateway.service.launching import launch_due
from gateway.service.leading import keep_leading
from gateway.service.reconciling import reconcile_due
from gateway.service.submit import submit
from gateway.service.verbs import cancel
from gateway.settings import Settings

OPERATOR = Caller(name="operator", role=Role.ADMIN, namespaces=("*",))
KEY = "the-one-job"
PAUSE_SECONDS = 0.02
PATIENCE_SECONDS = 60
GAVE_UP = 3


def run_with(environment: Mapping[str, str], manifest: str, end: str) -> None:
    """Run in a forked child under this environment and exit."""
    os.environ.clear()
    os.environ.update(environment)
    sys.exit(main(manifest, JobState(end)))


def main(manifest: str, wanted: JobState) -> int:
    """Run until the job has ended; give the exit code."""
    gateway = build_gateway(Settings())
    (spec,) = read_jobs(Path(manifest))
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        turn(gateway)
        job = submit(gateway, OPERATOR, spec, KEY).job
        if job.state in TERMINAL_STATES:
            return 0 if job.state is wanted else GAVE_UP
        if wanted is JobState.CANCELLED and is_to_be_cancelled(job):
            cancel(gateway, OPERATOR, job.id)
        time.sleep(PAUSE_SECONDS)
    return GAVE_UP


def is_to_be_cancelled(job: JobView) -> bool:
    """Whether the user of this scenario would cancel now."""
    return job.state is JobState.RUNNING


def turn(gateway: Gateway) -> None:
    """Make one pass of everything."""
    keep_leading(gateway)
    sync(gateway)
    run_cycle(gateway)
    launch_due(gateway)
    reconcile_due(gateway)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], JobState(sys.argv[2])))
