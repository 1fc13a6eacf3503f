"""Checks of a cluster before jobs are sent there: does it answer, serve PyTorchJobs, permit us?

Only reads and access reviews; nothing is created.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.backends.kubeflow.answers import ListExpired, ObjectAbsent, ObjectChanged, ObjectExists
from gateway.backends.kubeflow.calls import JOBS_ROOT, Calls
from gateway.backends.kubeflow.client import KubernetesTransport
from gateway.backends.kubeflow.deadline import Deadline
from gateway.backends.kubeflow.json_paths import at, items_at, text_at
from gateway.backends.kubeflow.names import CRD_NAME, PLURAL
from gateway.backends.kubeflow.permissions import CLUSTER_WIDE, IN_NAMESPACES, Permission
from gateway.backends.kubeflow.settings import KubeflowSettings
from gateway.errors import GatewayError

UNEXPECTED = (GatewayError, ObjectAbsent, ObjectExists, ObjectChanged, ListExpired)
OLDEST_MINOR = 30
"""Kubernetes 1.30: scheduling gates are generally available."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One finding; `fix` says what to do when it is not fine."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


def examine(kubeconfig: Path | None, namespaces: Sequence[str]) -> list[Check]:
    """Check the cluster of a kubeconfig; raises StartupRefused when that cannot be read."""
    settings = KubeflowSettings(kubeconfig=kubeconfig, namespaces=tuple(namespaces))
    return examine_cluster(Calls(KubernetesTransport(kubeconfig), settings.call_seconds), settings)


def examine_cluster(calls: Calls, settings: KubeflowSettings) -> list[Check]:
    """Run all checks; when the cluster does not answer, that is the only finding."""
    first = _server(calls, settings)
    if not first.ok and not first.detail.startswith("version"):
        return [first]
    return [first, *_kinds(calls, settings), *_permissions(calls, settings)]


def _server(calls: Calls, settings: KubeflowSettings) -> Check:
    name = "API server"
    try:
        version = calls.read("/version", "version", Deadline(settings.call_seconds))
    except UNEXPECTED as error:
        return Check(
            name=name,
            ok=False,
            detail=str(error),
            fix="check TRAINING_GATEWAY_KUBECONFIG and the network",
        )
    minor = text_at(version, "minor").rstrip("+")
    is_new = text_at(version, "major") != "1" or (minor.isdigit() and int(minor) >= OLDEST_MINOR)
    return Check(
        name=name,
        ok=is_new,
        detail=f"version {text_at(version, 'gitVersion')}",
        fix="" if is_new else f"update Kubernetes to 1.{OLDEST_MINOR} or newer",
    )


def _kinds(calls: Calls, settings: KubeflowSettings) -> Iterator[Check]:
    fix = "install the training operator 1.9 or newer"
    try:
        served = calls.read(JOBS_ROOT, CRD_NAME, Deadline(settings.call_seconds))
    except UNEXPECTED as error:
        yield Check(name="PyTorchJob", ok=False, detail=str(error), fix=fix)
        return
    names = {text_at(entry, "name") for entry in items_at(served, "resources")}
    is_served = PLURAL in names
    detail = f"{CRD_NAME} v1 is {'served' if is_served else 'not served'}"
    yield Check(name="PyTorchJob", ok=is_served, detail=detail, fix="" if is_served else fix)
    if is_served:
        yield _fields(calls, settings)


def _fields(calls: Calls, settings: KubeflowSettings) -> Check:
    """Look whether the installed schema keeps scheduling gates, or would drop them silently."""
    name = "PyTorchJob fields"
    try:
        schema = calls.read(f"/openapi/v3{JOBS_ROOT}", "schema", Deadline(settings.call_seconds))
    except UNEXPECTED as error:
        return Check(name=name, ok=False, detail=str(error), fix="permit system:discovery")
    is_known = "schedulingGates" in json.dumps(schema)
    return Check(
        name=name,
        ok=is_known,
        detail=f"schedulingGates is {'known' if is_known else 'unknown'} to the installed CRD",
        fix="" if is_known else "update the training operator's CRD to 1.9 or newer",
    )


def _permissions(calls: Calls, settings: KubeflowSettings) -> Iterator[Check]:
    yield from _reviews(calls, settings, CLUSTER_WIDE, "")
    for namespace in settings.namespaces:
        yield from _reviews(calls, settings, IN_NAMESPACES, namespace)


def _reviews(
    calls: Calls, settings: KubeflowSettings, wanted: Iterable[Permission], namespace: str
) -> Iterator[Check]:
    where = f" in {namespace}" if namespace else ""
    file = "job-namespace/role-binding.yaml" if namespace else "base/fleet-reader.yaml"
    for permission in wanted:
        problem = _problem(calls, settings, permission, namespace)
        yield Check(
            name=f"{permission}{where}",
            ok=not problem,
            detail=problem or "permitted",
            fix=f"apply deploy/{file}" if problem else "",
        )


def _problem(
    calls: Calls, settings: KubeflowSettings, permission: Permission, namespace: str
) -> str:
    resource, _, subresource = permission.resource.partition("/")
    attributes = {
        "group": permission.group,
        "resource": resource,
        "subresource": subresource,
        "verb": permission.verb,
        "namespace": namespace,
    }
    try:
        review = calls.review_access(attributes, Deadline(settings.call_seconds))
    except UNEXPECTED as error:
        return str(error)
    return "" if at(review, "status", "allowed") is True else "not permitted"
