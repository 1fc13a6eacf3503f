"""The server of `_server`, whose gangs are PyTorchJobs in a real API server besides.

Each create sends the PyTorchJob as the Kubeflow back end does. When a gang has ended, one write of
the PyTorchJob's status is made by threads that stand for the operator. Nobody makes pods, looks or
opens gates there: the gangs run in the virtual cluster.
"""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from gateway.backends.base import Launch, ObjectOutcome, ObjectRef, Observation
from gateway.backends.kubeflow import KubeflowBackend, KubeflowSettings
from tests.bench._server import NotingBackend, serve
from tests.cluster.harness.rest import Rest

KUBECONFIG, API_SERVER = "BENCH_KUBECONFIG", "BENCH_API_SERVER"
CA, TOKEN = "BENCH_API_CA", "BENCH_API_TOKEN"
WRITERS = 4
SUCCEEDED: Mapping[str, Any] = {
    "status": {
        "conditions": [{"type": "Succeeded", "status": "True", "reason": "PyTorchJobSucceeded"}]
    }
}


class ClusterBackend(NotingBackend):
    """Makes an object in the API server for each of the virtual cluster's."""

    calls_at_once = KubeflowBackend.calls_at_once

    def __init__(self, cluster: KubeflowBackend, write_status: Callable[[str], object]) -> None:
        """Take the back end that creates, and what writes the status of a path."""
        super().__init__()
        self._cluster = cluster
        self._write_status = write_status
        self._operator = ThreadPoolExecutor(WRITERS, thread_name_prefix="operator")
        self._writes: dict[str, Future[object]] = {}

    def create(self, launch: Launch) -> ObjectRef:
        """Create both objects; the gateway's own is the virtual one."""
        self._cluster.create(launch)
        return super().create(launch)

    def observe(self, launch: Launch, ref: ObjectRef) -> Observation:
        """Look at the virtual object; an end is written once."""
        seen = super().observe(launch, ref)
        if seen.outcome is not ObjectOutcome.UNDECIDED and ref.uid not in self._writes:
            jobs = f"/apis/kubeflow.org/v1/namespaces/{ref.namespace}/pytorchjobs"
            write = partial(self._write_status, f"{jobs}/{ref.name}/status")
            self._writes[ref.uid] = self._operator.submit(write)
        return seen

    def close(self) -> None:
        """Wait for the last write; raises what one of them raised."""
        self._operator.shutdown(wait=True)
        for write in self._writes.values():
            write.result()


def main() -> None:
    """Serve until SIGTERM, then write the log."""
    settings = KubeflowSettings(kubeconfig=Path(os.environ[KUBECONFIG]))
    rest = Rest(os.environ[API_SERVER], Path(os.environ[CA]), os.environ[TOKEN])
    write = partial(rest.merge_patch, body=dict(SUCCEEDED))
    backend = ClusterBackend(KubeflowBackend(settings), write)
    serve(backend)
    backend.close()


if __name__ == "__main__":
    main()
