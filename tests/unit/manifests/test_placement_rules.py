"""Where pods may run is read as Kubernetes means it; what cannot be promised is refused."""

from typing import Any

import pytest

from gateway.manifests import ReadOptions
from tests.unit.manifests.building import POD, a_manifest, master_of, refusal_of

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ON_HOST = ReadOptions(allow_unsafe_templates=True)


def with_terms(*terms: dict[str, Any]) -> dict[str, Any]:
    return a_manifest(
        pod={"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}
    )


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def test_selectors_and_every_operator_are_read() -> None:
    document = with_terms(
        {"matchExpressions": [expression("a", "In", "x", "y"), expression("b", "Exists")]},
        {"matchExpressions": [expression("c", "Gt", "7")]},
    )
    pod = document["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    pod["nodeSelector"] = {"pool": "gpu"}
    read = master_of(document)
    assert read.node_selector == {"pool": "gpu"}
    first, second = read.affinity
    assert [(each.key, each.operator, each.values) for each in (*first, *second)] == [
        ("a", "In", ("x", "y")),
        ("b", "Exists", ()),
        ("c", "Gt", ("7",)),
    ]


@pytest.mark.parametrize(
    ("term", "place"),
    [
        ({"matchExpressions": []}, "matchExpressions"),
        ({}, "matchExpressions"),
        ({"matchExpressions": [expression("a", "In")]}, "matchExpressions/0/values"),
        ({"matchExpressions": [expression("a", "NotIn")]}, "matchExpressions/0/values"),
        ({"matchExpressions": [expression("a", "Exists", "x")]}, "matchExpressions/0/values"),
        ({"matchExpressions": [expression("a", "Gt", "x")]}, "matchExpressions/0/values"),
        ({"matchExpressions": [expression("a", "Lt", "1", "2")]}, "matchExpressions/0/values"),
        ({"matchExpressions": [expression("a", "in", "x")]}, "matchExpressions/0/operator"),
        ({"matchExpressions": [{"key": "a"}]}, "matchExpressions/0/operator"),
        ({"matchExpressions": [expression("", "Exists")]}, "matchExpressions/0/key"),
        ({"matchFields": [expression("metadata.name", "In", "n")]}, "matchFields"),
    ],
)
def test_terms_that_kubernetes_would_refuse_are_refused(term: dict[str, Any], place: str) -> None:
    error = refusal_of(with_terms(term))
    assert error.pointer == f"{POD}/affinity/nodeAffinity/{REQUIRED}/nodeSelectorTerms/0/{place}"


def test_a_required_affinity_without_terms_is_refused() -> None:
    assert "has no term" in refusal_of(with_terms()).detail


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"key": "a", "value": "b"}, ("a", "Equal", "b", "")),
        ({"operator": "Exists"}, ("", "Exists", "", "")),
        (
            {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
            ("a", "Exists", "", "NoExecute"),
        ),
    ],
)
def test_tolerations_are_read(toleration: dict[str, Any], expected: tuple[str, ...]) -> None:
    (read,) = master_of(a_manifest(pod={"tolerations": [toleration]})).tolerations
    assert (read.key, read.operator, read.value, read.effect) == expected


@pytest.mark.parametrize(
    ("toleration", "place"),
    [
        ({"value": "b"}, ""),
        ({"key": "a", "operator": "Exist"}, "/operator"),
        ({"key": "a", "operator": "Exists", "value": "b"}, "/value"),
        ({"key": "a", "effect": "NoSchedul"}, "/effect"),
        ({"key": "a", "value": True}, "/value"),
    ],
)
def test_wrong_tolerations_are_refused(toleration: dict[str, Any], place: str) -> None:
    error = refusal_of(a_manifest(pod={"tolerations": [toleration]}))
    assert error.pointer == f"{POD}/tolerations/0{place}"


@pytest.mark.parametrize(
    ("ports", "is_on_host", "expected"),
    [
        ([], False, ()),
        ([{"containerPort": 80}], False, ()),
        ([{"containerPort": 80, "hostPort": 8080}], False, (8080,)),
        ([], True, (23456,)),
        ([{"containerPort": 80}], True, (80, 23456)),
        ([{"name": "pytorchjob-port", "containerPort": 9}], True, (9,)),
    ],
)
def test_ports_of_the_host_are_found(
    ports: list[dict[str, Any]], *, is_on_host: bool, expected: tuple[int, ...]
) -> None:
    document = a_manifest({"ports": ports}, pod={"hostNetwork": is_on_host})
    assert master_of(document, ON_HOST).host_ports == expected


@pytest.mark.parametrize(
    "pod",
    [
        {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}}},
        {"affinity": {"podAntiAffinity": {REQUIRED: []}}},
        {"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]},
        {"schedulerName": "default-scheduler"},
        {"schedulingGates": []},
    ],
)
def test_mere_wishes_about_pods_are_kept(pod: dict[str, Any]) -> None:
    assert master_of(a_manifest(pod=pod)).count == 1
