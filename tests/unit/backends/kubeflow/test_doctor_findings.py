"""Every finding of the doctor: what it asks, what each answer means, and what to do then."""

from typing import Any

import pytest

from gateway.backends.kubeflow import KubeflowSettings
from gateway.backends.kubeflow.answers import Answer
from gateway.backends.kubeflow.calls import Calls
from gateway.backends.kubeflow.client import Request
from gateway.backends.kubeflow.doctor import Check, examine_cluster
from gateway.backends.kubeflow.permissions import CLUSTER_WIDE, IN_NAMESPACES, Permission
from tests.unit.backends.kubeflow.a_cluster import ClusterInMemory, good, status
from tests.unit.backends.kubeflow.test_doctor import Health

FORBIDDEN = status(403, "Forbidden", "no")
ABSENT = Answer(status=404, body=b"404 page not found")
Overrides = dict[str, Answer]


class Patient:
    """A healthy cluster but for what certain paths answer."""

    def __init__(self, answers: Overrides | None = None, *namespaces: str, **health: Any) -> None:
        self.cluster = ClusterInMemory()
        healthy = Health(**health)
        overrides = answers or {}

        def answer(request: Request) -> Answer | None:
            for path, given in overrides.items():
                if request.path.startswith(path):
                    return given
            return healthy(request)

        self.cluster.faults = [answer]
        settings = KubeflowSettings(namespaces=namespaces)
        self.checks = examine_cluster(Calls(self.cluster, 5.0), settings)

    @property
    def bad(self) -> list[Check]:
        """Give what is not fine."""
        return [check for check in self.checks if not check.ok]


@pytest.mark.parametrize(
    ("version", "is_new"),
    [
        ({"major": "1", "minor": "29"}, False),
        ({"major": "1", "minor": "29+"}, False),
        ({"major": "1", "minor": "30"}, True),
        ({"major": "1", "minor": "30+"}, True),
        ({"major": "1", "minor": "100"}, True),
        ({"major": "2", "minor": "0"}, True),
        ({"major": "1", "minor": ""}, False),
        ({"major": "1", "minor": "x"}, False),
        ({"major": "1"}, False),
    ],
)
def test_kubernetes_is_new_enough_from_1_30_on(version: dict[str, str], *, is_new: bool) -> None:
    first = Patient({"/version": good({**version, "gitVersion": "v1"})}).checks[0]

    assert (first.name, first.ok, first.detail) == ("API server", is_new, "version v1")
    assert first.fix == ("" if is_new else "update Kubernetes to 1.30 or newer")


@pytest.mark.parametrize("answer", [FORBIDDEN, status(500), ABSENT, status(429)])
def test_a_server_that_tells_no_version_is_the_only_finding(answer: Answer) -> None:
    patient = Patient({"/version": answer}, "team-a")

    [finding] = patient.checks
    assert not finding.ok
    assert finding.fix == "check TRAINING_GATEWAY_KUBECONFIG and the network"
    assert len(patient.cluster.requests) == 1


@pytest.mark.parametrize("answer", [ABSENT, FORBIDDEN, status(503), good({"resources": []})])
def test_a_cluster_without_pytorchjobs_is_told_what_to_install(answer: Answer) -> None:
    [finding] = Patient({"/apis/kubeflow.org/v1": answer}).bad

    assert (finding.name, finding.fix) == (
        "PyTorchJob",
        "install the training operator 1.9 or newer",
    )


@pytest.mark.parametrize(
    ("answer", "fix"),
    [
        (FORBIDDEN, "permit system:discovery"),
        (ABSENT, "permit system:discovery"),
        (good({}), "update the training operator's CRD to 1.9 or newer"),
        (good({"properties": {"schedulinggates": {}}}), "update the training operator's CRD"),
    ],
)
def test_a_schema_that_is_not_seen_or_too_old_is_told_apart(answer: Answer, fix: str) -> None:
    [finding] = Patient({"/openapi": answer}).bad

    assert finding.name == "PyTorchJob fields"
    assert finding.fix.startswith(fix)


def reviewed(patient: Patient) -> list[dict[str, str]]:
    bodies = [request.body or {} for request in patient.cluster.sent("POST")]
    return [body["spec"]["resourceAttributes"] for body in bodies]


@pytest.mark.parametrize("namespaces", [(), ("a",), ("a", "b")])
def test_every_permission_is_asked_for_in_every_namespace(namespaces: tuple[str, ...]) -> None:
    asked = reviewed(Patient(None, *namespaces))

    assert len(asked) == len(CLUSTER_WIDE) + len(namespaces) * len(IN_NAMESPACES)
    wide = [each for each in asked if not each["namespace"]]
    assert [(each["verb"], each["resource"]) for each in wide] == [
        ("list", "nodes"),
        ("list", "pods"),
    ]
    for namespace in namespaces:
        inside = [each for each in asked if each["namespace"] == namespace]
        assert {each["verb"] for each in inside if each["group"] == "kubeflow.org"} == {
            *("create", "delete", "get", "patch")
        }
        [logs] = [each for each in inside if each["subresource"]]
        assert (logs["resource"], logs["subresource"], logs["verb"]) == ("pods", "log", "get")


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (good({"status": {"allowed": False}}), "not permitted"),
        (good({"status": {"allowed": "true"}}), "not permitted"),
        (good({"status": {}}), "not permitted"),
        (good({}), "not permitted"),
        (good({"status": {"allowed": False, "denied": True, "reason": "r"}}), "not permitted"),
    ],
)
def test_only_a_plain_yes_permits(answer: Answer, detail: str) -> None:
    bad = Patient({"/apis/authorization.k8s.io": answer}, "team-a").bad

    assert {finding.detail for finding in bad} == {detail}
    assert [finding.fix for finding in bad] == [
        *["apply deploy/base/fleet-reader.yaml"] * len(CLUSTER_WIDE),
        *["apply deploy/job-namespace/role-binding.yaml"] * len(IN_NAMESPACES),
    ]
    assert bad[-1].name == "patch pytorchjobs.kubeflow.org in team-a"


def test_a_review_that_fails_is_a_finding_and_the_others_go_on() -> None:
    patient = Patient({"/apis/authorization.k8s.io": status(500, message="etcd")}, "team-a")

    assert len(patient.bad) == len(CLUSTER_WIDE) + len(IN_NAMESPACES)
    assert all(finding.detail.endswith(": etcd") for finding in patient.bad)


def test_a_fine_check_says_nothing_to_do() -> None:
    checks = Patient(None, "team-a").checks

    assert {check.fix for check in checks} == {""}
    assert {check.detail for check in checks[3:]} == {"permitted"}


def test_the_doctor_changes_nothing() -> None:
    requests = Patient(None, "a").cluster.requests
    posts = [request for request in requests if request.method != "GET"]

    assert {request.path for request in posts} == {
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    }


@pytest.mark.parametrize(
    ("permission", "words"),
    [
        (Permission("", "pods", "list"), "list pods"),
        (Permission("", "pods/log", "get"), "get pods/log"),
        (Permission("kubeflow.org", "pytorchjobs", "create"), "create pytorchjobs.kubeflow.org"),
    ],
)
def test_a_permission_reads_as_people_say_it(permission: Permission, words: str) -> None:
    assert str(permission) == words
