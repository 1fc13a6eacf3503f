"""Finds the programs of the control plane, or has them built once into a cache.

Order for each tool: the folder KUBEBUILDER_ASSETS when it has all of the tool's files, then the
cache below XDG_CACHE_HOME, then a build. Two test runs never build at the same time.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.harness import versions
from tests.cluster.harness.go_build import build_tool, say
from tests.cluster.harness.versions import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """The folders that hold the programs."""

    etcd_folder: Path
    kubernetes_folder: Path
    operator_folder: Path

    @property
    def etcd(self) -> Path:
        """Give the path of the store."""
        return self.etcd_folder / "etcd"

    @property
    def training_operator(self) -> Path:
        """Give the path of the operator."""
        return self.operator_folder / "training-operator"

    def kubernetes(self, name: str) -> Path:
        """Give the path of one of the kube-* programs."""
        return self.kubernetes_folder / name

    def operator_manifest(self, name: str) -> Path:
        """Give the path of one of the operator's own manifests, such as crds/….yaml."""
        return self.operator_folder / name


def find_binaries() -> Binaries:
    """Give all programs, building what is missing.

    Raises:
        BuildFailed: a program is missing and could not be built.
    """
    return Binaries(
        etcd_folder=folder_of(versions.etcd()),
        operator_folder=folder_of(versions.training_operator()),
        kubernetes_folder=folder_of(versions.kubernetes()),
    )


def cache_folder() -> Path:
    """Give the folder that outlives a checkout."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "training-gateway" / "cluster"


def folder_of(tool: Tool) -> Path:
    """Give the folder with every file of the tool."""
    given = os.environ.get("KUBEBUILDER_ASSETS")
    if given and is_complete(Path(given), tool):
        return Path(given)
    if given:
        say(f"KUBEBUILDER_ASSETS does not hold all of {tool.label}: {', '.join(tool.files)}")
    target = cache_folder() / tool.label
    if is_complete(target, tool):
        return target
    with lock(cache_folder()):
        if not is_complete(target, tool):
            build_tool(tool, target)
    return target


def is_complete(folder: Path, tool: Tool) -> bool:
    """Say whether the folder has every file of the tool."""
    return all((folder / name).is_file() for name in tool.files)


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Hold the only right to build in this cache; waits while another run builds."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another run is building the control plane, waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
