"""What the replicas of the local conformance tests run; its behaviour is written in its arguments.

    replica_program.py KIND CONTROL_FOLDER NAME WORLD

It leaves its environment in the control folder and ends when told by a file there.
"""

import json
import os
import sys
import time
from pathlib import Path

FAILING_CODE = 3
POLL_SECONDS = 0.02


def main() -> int:
    """Run until told, and give the exit code."""
    kind, folder, name, world = sys.argv[1:]
    rank = int(os.environ["RANK"])
    control = Path(folder) / name
    control.mkdir(exist_ok=True)
    _say(f"rank {rank} of {name} begins")
    _leave_environment(control / f"{rank}.json")
    _say(f"port {os.environ['MASTER_PORT']} of {os.environ['MASTER_ADDR']}")
    if kind == "succeeding":
        return 0
    if kind == "failing" and rank == int(world) - 1:
        return FAILING_CODE
    return _wait(control / f"{rank}.code")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _leave_environment(path: Path) -> None:
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps({"pid": os.getpid(), **os.environ}))
    fresh.replace(path)


def _wait(path: Path) -> int:
    while not path.exists():
        time.sleep(POLL_SECONDS)
    return int(path.read_text())


if __name__ == "__main__":
    sys.exit(main())
