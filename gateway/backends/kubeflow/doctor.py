"""Checks of a cluster before jobs are sent there: does it answer, serve PyTorchJobs, permit us?

Only reads and access reviews; nothing is created.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from gateway.backends.kubeflow.answers import ListExpired, ObjectAbsent, ObjectChanged, ObjectExists
from gateway.backends.kubeflow.calls import JOBS_ROOT, Calls
from gateway.backends.kubeflow.client import KubernetesTransport
from gateway.backends.kubeflow.deadline import Deadline
from gateway.backends.kubeflow.json_paths import at, entry_with, items_at, text_at
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


def _finding(name: str, detail: str, fix: str, *, ok: bool) -> Check:
    return Check(name=name, ok=ok, detail=detail, fix="" if ok else fix)


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
        fix = "check TRAINING_GATEWAY_KUBECONFIG and the network"
        return Check(name=name, ok=False, detail=str(error), fix=fix)
    return _finding(
        name,
        f"version {text_at(version, 'gitVersion')}",
        f"update Kubernetes to 1.{OLDEST_MINOR} or newer",
        # Managed clusters write the minor as "30+".
        ok=_is_new(text_at(version, "major"), text_at(version, "minor").rstrip("+")),
    )


def _is_new(major: str, minor: str) -> bool:
    return major != "1" or (minor.isdigit() and int(minor) >= OLDEST_MINOR)


def _kinds(calls: Calls, settings: KubeflowSettings) -> Iterator[Check]:
    fix = "install the training operator 1.9 or newer"
    try:
        served = calls.read(JOBS_ROOT, CRD_NAME, Deadline(settings.call_seconds))
    except UNEXPECTED as error:
        yield Check(name="PyTorchJob", ok=False, detail=str(error), fix=fix)
        return
    if entry_with(items_at(served, "resources"), name=PLURAL) is None:
        yield Check(name="PyTorchJob", ok=False, detail=f"{CRD_NAME} v1 is not served", fix=fix)
        return
    yield Check(name="PyTorchJob", ok=True, detail=f"{CRD_NAME} v1 is served")
    yield _fields(calls, settings)


def _fields(calls: Calls, settings: KubeflowSettings) -> Check:
    """Look whether the installed schema keeps scheduling gates, or would drop them silently."""
    name = "PyTorchJob fields"
    try:
        # The published OpenAPI document holds the CRD's schema; reading the CRD itself would need a
        # permission that the gateway has no other use for.
        schema = calls.read(f"/openapi/v3{JOBS_ROOT}", "schema", Deadline(settings.call_seconds))
    except UNEXPECTED as error:
        return Check(name=name, ok=False, detail=str(error), fix="permit system:discovery")
    is_known = "schedulingGates" in json.dumps(schema)
    return _finding(
        name,
        f"schedulingGates is {'known' if is_known else 'unknown'} to the installed CRD",
        "update the training operator's CRD to 1.9 or newer",
        ok=is_known,
    )


def _permissions(calls: Calls, settings: KubeflowSettings) -> Iterator[Check]:
    for permission in CLUSTER_WIDE:
        problem = _problem(calls, settings, permission, "")
        yield _review(str(permission), problem, "base/fleet-reader.yaml")
    for namespace, permission in product(settings.namespaces, IN_NAMESPACES):
        problem = _problem(calls, settings, permission, namespace)
        yield _review(f"{permission} in {namespace}", problem, "job-namespace/role-binding.yaml")


def _review(name: str, problem: str, file: str) -> Check:
    return _finding(name, problem or "permitted", f"apply deploy/{file}", ok=not problem)


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
        # Whoever is authenticated may review their own access (system:basic-user), so this works
        # without any permission of ours.
        review = calls.review_access(attributes, Deadline(settings.call_seconds))
    except UNEXPECTED as error:
        return str(error)
    return "" if at(review, "status", "allowed") is True else "not permitted"
