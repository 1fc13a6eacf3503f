"""What the doctor finds, and what it says to do about it."""

import json
from typing import Any

from gateway.backends.kubeflow import KubeflowSettings
from gateway.backends.kubeflow.answers import Answer
from gateway.backends.kubeflow.calls import Calls
from gateway.backends.kubeflow.client import Request
from gateway.backends.kubeflow.doctor import Check, examine_cluster
from gateway.errors import ClusterUnreachable
from tests.unit.backends.kubeflow.a_cluster import ClusterInMemory, good

SETTINGS = KubeflowSettings(namespaces=("team-a",))


class Health:
    """A cluster in which everything is fine unless told otherwise."""

    def __init__(self, **changes: Any) -> None:
        self.minor = changes.get("minor", "37")
        self.resources = changes.get("resources", [{"name": "pytorchjobs"}])
        self.schema = changes.get("schema", {"schedulingGates": {}})
        self.forbidden = changes.get("forbidden", ())

    def __call__(self, request: Request) -> Answer | None:
        """Answer one request of the doctor."""
        if request.path == "/version":
            return good({"major": "1", "minor": self.minor, "gitVersion": f"v1.{self.minor}.0"})
        if request.path.startswith("/openapi"):
            return good(self.schema)
        if request.method == "POST":
            wanted = json.dumps(request.body)
            allowed = not any(words in wanted for words in self.forbidden)
            return good({"status": {"allowed": allowed}})
        return good({"resources": self.resources})


def findings(**changes: Any) -> dict[str, Check]:
    cluster = ClusterInMemory()
    cluster.faults = [Health(**changes)]
    found = examine_cluster(Calls(cluster, 5.0), SETTINGS)
    return {check.name: check for check in found}


def bad(**changes: Any) -> list[Check]:
    return [check for check in findings(**changes).values() if not check.ok]


def test_a_healthy_cluster_has_no_bad_finding() -> None:
    found = findings()

    assert bad() == []
    assert "create pytorchjobs.kubeflow.org in team-a" in found
    assert found["API server"].detail == "version v1.37.0"


def test_an_old_cluster_is_told_to_be_updated_and_the_rest_is_still_looked_at() -> None:
    [finding] = bad(minor="29+")

    assert finding.name == "API server"
    assert "1.30" in finding.fix


def test_a_missing_permission_names_the_verb_and_the_file() -> None:
    [finding] = bad(forbidden=('"resource": "pods", "subresource": "", "verb": "patch"',))

    assert finding.name == "patch pods in team-a"
    assert finding.fix == "apply deploy/job-namespace/role-binding.yaml"


def test_a_cluster_without_the_operator_or_with_an_old_one_is_recognised() -> None:
    [finding] = bad(resources=[])
    assert "install the training operator" in finding.fix

    [finding] = bad(schema={})
    assert finding.name == "PyTorchJob fields"
    assert "update" in finding.fix


def test_when_the_cluster_does_not_answer_that_is_the_only_finding() -> None:
    def silence(_: Request) -> Answer:
        raise ClusterUnreachable("no route")

    cluster = ClusterInMemory()
    cluster.faults = [silence]

    [finding] = examine_cluster(Calls(cluster, 5.0), SETTINGS)

    assert not finding.ok
    assert "no route" in finding.detail
