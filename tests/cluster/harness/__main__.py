"""Runs a cluster by hand: `python -m tests.cluster.harness up --dir DIR`, or only `build`.

DIR/scripts.json, a list of objects with the fields of PodScript, is read again when it changes.
"""

import argparse
import json
import shutil
import signal
import threading
from pathlib import Path

from tests.cluster.harness.binaries import find_binaries
from tests.cluster.harness.cluster import Cluster
from tests.cluster.harness.fake_kubelet import FakeKubelet
from tests.cluster.harness.go_build import say
from tests.cluster.harness.nodes import NodeShape
from tests.cluster.harness.scripts import PodScript


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.harness")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build the programs into the cache and end")
    up = commands.add_parser("up", help="run a whole cluster until SIGTERM or Ctrl-C")
    up.add_argument("--dir", type=Path, required=True, help="for ready.json and kubeconfigs")
    up.add_argument("--nodes", type=int, default=3)
    up.add_argument("--gpus", type=int, default=8, help="of each node")
    up.add_argument("--nics", type=int, default=8, help="of each node")
    up.add_argument("--run-seconds", type=float, help="pods succeed after it; else they run on")
    arguments = parser.parse_args()
    if arguments.command == "build":
        say(f"programs are in {find_binaries()}")
    else:
        run_cluster(arguments)


def run_cluster(arguments: argparse.Namespace) -> None:
    """Start everything, say so in ready.json, wait for a signal, end everything."""
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    folder: Path = arguments.dir.resolve()
    ready = folder / "ready.json"
    shutil.rmtree(folder / "data", ignore_errors=True)
    (folder / "data").mkdir(parents=True)
    ready.unlink(missing_ok=True)
    with Cluster(folder / "data") as cluster:
        names = [f"node-{index}" for index in range(arguments.nodes)]
        cluster.add_nodes(*names, shape=NodeShape(gpus=arguments.gpus, nics=arguments.nics))
        write_ready(cluster, ready, names)
        watch_scripts(cluster.kubelet, folder / "scripts.json", arguments.run_seconds, over)
        ready.unlink()


def write_ready(cluster: Cluster, ready: Path, names: list[str]) -> None:
    """Write admin.kubeconfig and then, by a rename, ready.json."""
    plane = cluster.plane
    config = plane.kubeconfig_for(plane.admin_token, ready.with_name("admin.kubeconfig"))
    facts = {
        "url": plane.url,
        "ca": str(plane.ca_path),
        "kubeconfig": str(config),
        "version": plane.version(),
        "nodes": names,
        "logs": str(plane.folder / "logs"),
    }
    draft = ready.with_suffix(".draft")
    draft.write_text(json.dumps(facts, indent=2) + "\n")
    draft.rename(ready)
    say(f"{facts['version']} is up with {len(names)} nodes: export KUBECONFIG={config}")


def watch_scripts(
    kubelet: FakeKubelet, path: Path, run_seconds: float | None, over: threading.Event
) -> None:
    """Keep the scripts of the file in force until the end."""
    seen: float | None = -1.0
    while not over.wait(0.5):
        changed = path.stat().st_mtime if path.exists() else None
        if changed == seen:
            continue
        seen = changed
        kubelet.reset()
        kubelet.script(PodScript(run_seconds=run_seconds))
        for entry in reversed(json.loads(path.read_text()) if changed else []):
            lists = {key: tuple(value) for key, value in entry.items() if isinstance(value, list)}
            kubelet.script(PodScript(**{**entry, **lists}))


if __name__ == "__main__":
    main()
