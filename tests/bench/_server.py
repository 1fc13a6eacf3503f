"""A whole `gateway serve` over a virtual cluster in memory, which notes when it started what.

The simulated back end that ships keeps its cluster in a file, rewritten at each change; that file
is no part of what is measured, so here it has none. At the end the log of starts is written down.
"""

import json
import os
import time
from dataclasses import replace
from pathlib import Path

from gateway.api.tokens import TokenFile
from gateway.backends.base import Launch, ObjectRef
from gateway.backends.simulated import SimulatedBackend
from gateway.bootstrap import _run, build_gateway
from gateway.settings import Settings
from tests.bench._tenants import cpu_nodes

NODES = 40
LOG_VARIABLE = "BENCH_START_LOG"


class NotingBackend(SimulatedBackend):
    """Notes the instant at which each object was opened."""

    def __init__(self) -> None:
        """Begin with an empty log."""
        super().__init__(cpu_nodes(NODES))
        self.opened: dict[str, float] = {}

    def open_gates(self, launch: Launch, ref: ObjectRef) -> bool:
        """Open, and note when."""
        is_open = super().open_gates(launch, ref)
        if is_open:
            self.opened.setdefault(f"{launch.namespace}/{launch.job_id}", time.time())
        return is_open


def serve(backend: NotingBackend) -> None:
    """Serve until SIGTERM, then write the log."""
    settings = Settings()
    gateway = replace(build_gateway(settings), backend=backend)
    assert settings.token_file is not None
    try:
        _run(gateway, TokenFile(settings.token_file), settings)
    finally:
        times = os.times()
        document = {"opened": backend.opened, "cpu_seconds": times.user + times.system}
        Path(os.environ[LOG_VARIABLE]).write_text(json.dumps(document), encoding="utf-8")


if __name__ == "__main__":
    serve(NotingBackend())
