"""What a replica of a PyTorchJob runs on this machine: its command, environment and folder.

Pure, but for a look at whether a working folder exists. Images are not run: only what a container
says itself counts, and what cannot be honoured here is refused rather than left out.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gateway.backends.base import Launch, PlannedPod
from gateway.errors import ClusterRejected

CONTAINER: Final = "pytorch"
PYTHONS: Final = frozenset({"python", "python3"})
# `$$` is an escaped dollar, `$(NAME)` a reference; both in one expression, read from the left, so
# that `$$(NAME)` stays a literal.
_REFERENCE = re.compile(r"\$(?:\$|\(([^()$]+)\))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One replica's program; `$(NAME)` is not expanded yet."""

    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    """In the order of the container, which expansion depends on."""
    folder: str
    restart_policy: str


def read_program(launch: Launch, pod: PlannedPod, folder: Path) -> Program:
    """Read the program of one pod; `folder` is where it runs unless it names a working folder.

    Raises ClusterRejected with a pointer for a manifest that cannot run as plain processes.
    """
    pointer = f"/spec/pytorchReplicaSpecs/{pod.pod_set}"
    replicas = _mapping(launch.manifest, ("spec", "pytorchReplicaSpecs", pod.pod_set), pointer)
    container, pointer = _container(replicas, pointer)
    command = container.get("command")
    if not command:
        raise ClusterRejected(
            f"the container {CONTAINER!r} of {pod.pod_set} has no command, and the local back end "
            "runs no images",
            pointer=f"{pointer}/command",
            hint='give a command, for example ["python", "train.py"], or use a cluster',
        )
    return Program(
        command=tuple(map(str, [*command, *(container.get("args") or ())])),
        environment=tuple(_environment(container, launch, pointer)),
        folder=_folder(container, folder, pointer),
        restart_policy=str(replicas.get("restartPolicy") or "Never"),
    )


def expand(
    program: Program, rendezvous: Mapping[str, str], python: str
) -> tuple[list[str], dict[str, str]]:
    """Give the argument list and environment with `$(NAME)` replaced as a kubelet does.

    The operator's variables win over the container's own. `python` and `python3` become the given
    interpreter.
    """
    environment: dict[str, str] = {}
    for name, value in program.environment:
        environment[name] = _expand(value, environment)
    # The operator appends its own variables, and in a pod the last of two equal names wins.
    environment |= rendezvous
    command = [_expand(part, environment) for part in program.command]
    if command[0] in PYTHONS:
        command[0] = python
    return command, environment


def _container(replicas: Mapping[str, Any], pointer: str) -> tuple[Mapping[str, Any], str]:
    pointer += "/template/spec/containers"
    containers = _mapping(replicas, ("template", "spec"), pointer).get("containers") or ()
    for position, container in enumerate(containers):
        if isinstance(container, Mapping) and container.get("name") == CONTAINER:
            return container, f"{pointer}/{position}"
    raise ClusterRejected(
        f"no container is named {CONTAINER!r}",
        pointer=pointer,
        hint=f"name the container that trains {CONTAINER!r}",
    )


def _environment(
    container: Mapping[str, Any], launch: Launch, pointer: str
) -> Sequence[tuple[str, str]]:
    # Refused, for a training without the variable would fail later and name another cause.
    if container.get("envFrom"):
        raise _unresolvable("envFrom", f"{pointer}/envFrom")
    return [
        (str(entry["name"]), _value(entry, launch, f"{pointer}/env/{position}"))
        for position, entry in enumerate(container.get("env") or ())
    ]


def _value(entry: Mapping[str, Any], launch: Launch, pointer: str) -> str:
    """Give the value of one variable, which may be a field of the pod."""
    if not entry.get("valueFrom"):
        return str(entry.get("value") or "")
    value = _from_field(entry["valueFrom"], launch)
    if value is None:
        raise _unresolvable(entry["name"], f"{pointer}/valueFrom")
    return value


def _from_field(source: Mapping[str, Any], launch: Launch) -> str | None:
    path = (source.get("fieldRef") or {}).get("fieldPath")
    known = {"metadata.namespace": launch.namespace, "metadata.name": launch.object_name}
    return known.get(str(path))


def _unresolvable(name: str, pointer: str) -> ClusterRejected:
    return ClusterRejected(
        f"the local back end cannot resolve {name}: there is no cluster to read it from",
        pointer=pointer,
        hint="give a plain value, or use a cluster",
    )


def _folder(container: Mapping[str, Any], default: Path, pointer: str) -> str:
    wanted = container.get("workingDir")
    if not wanted:
        return str(default)
    if not Path(str(wanted)).is_dir():
        raise ClusterRejected(
            f"the working folder {wanted!r} does not exist on this machine",
            pointer=f"{pointer}/workingDir",
            value=wanted,
            hint="create it, or leave workingDir out to run where the gateway was started",
        )
    return str(wanted)


def _mapping(document: Mapping[str, Any], path: Sequence[str], pointer: str) -> Mapping[str, Any]:
    found: Any = document
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    if not isinstance(found, Mapping):
        raise ClusterRejected(
            f"the manifest has no {'.'.join(path)}",
            pointer=pointer,
            hint="submit a PyTorchJob whose replica specs have a template",
        )
    return found


def _expand(text: str, environment: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return "$"
        return environment.get(name, match[0])  # an unknown reference stays, as in Kubernetes

    return _REFERENCE.sub(value, text)
