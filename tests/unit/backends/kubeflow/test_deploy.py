"""What deploy/ grants is what the code needs: every verb, and not one more."""

from pathlib import Path
from typing import Any

import yaml

from gateway.backends.kubeflow.permissions import CLUSTER_WIDE, IN_NAMESPACES, Permission

DEPLOY = Path(__file__).parents[4] / "deploy"


def documents(*parts: str) -> dict[str, dict[str, Any]]:
    found = yaml.safe_load_all(DEPLOY.joinpath(*parts).read_text("utf-8"))
    return {document["kind"]: document for document in found}


def granted(role: dict[str, Any]) -> list[Permission]:
    return sorted(
        Permission(group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    )


def test_the_fleet_reader_may_do_what_is_needed_and_nothing_else() -> None:
    role = documents("base", "fleet-reader.yaml")["ClusterRole"]

    assert granted(role) == sorted(CLUSTER_WIDE)
    assert {permission.verb for permission in CLUSTER_WIDE} == {"list"}


def test_the_job_runner_may_do_what_is_needed_and_nothing_else() -> None:
    role = documents("base", "job-runner.yaml")["ClusterRole"]

    assert granted(role) == sorted(IN_NAMESPACES)


def test_no_secret_no_exec_and_no_wildcard_is_granted() -> None:
    for permission in (*CLUSTER_WIDE, *IN_NAMESPACES):
        assert "*" not in str(permission)
        assert permission.resource not in {"secrets", "pods/exec", "configmaps"}


def test_the_job_runner_is_bound_in_namespaces_only() -> None:
    kinds = documents("base", "job-runner.yaml").keys()
    binding = documents("job-namespace", "role-binding.yaml")["RoleBinding"]

    assert "ClusterRoleBinding" not in kinds
    assert binding["roleRef"]["name"] == "training-gateway-job-runner"
    account = documents("base", "service-account.yaml")["ServiceAccount"]["metadata"]
    [subject] = binding["subjects"]
    assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])


def test_pods_of_the_gateway_never_push_others_out() -> None:
    [priority] = documents("base", "priority-class.yaml").values()

    assert priority["preemptionPolicy"] == "Never"
    assert priority["globalDefault"] is False


def test_the_base_lists_every_file_beside_it() -> None:
    base = documents("base", "kustomization.yaml")["Kustomization"]
    files = {path.name for path in (DEPLOY / "base").glob("*.yaml")} - {"kustomization.yaml"}

    assert set(base["resources"]) == files
