"""A name must leave room for the names made of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.manifests import read_job
from gateway.manifests.naming import longest_name
from tests.unit.manifests.building import a_manifest, refusal_of


@pytest.mark.parametrize(
    ("workers", "limit"), [(0, 48), (1, 48), (10, 48), (11, 47), (100, 47), (101, 46), (9999, 45)]
)
def test_the_limit_depends_on_the_digits_of_the_last_worker(workers: int, limit: int) -> None:
    assert longest_name(workers) == limit
    name = "n" * limit
    assert read_job(a_manifest(metadata={"name": name}, workers=workers)).name == name
    error = refusal_of(a_manifest(metadata={"name": name + "n"}, workers=workers))
    assert error.pointer == "/metadata/name"
    assert error.allowed == (f"at most {limit} characters",)
    assert f"has {limit + 1} characters" in error.detail


@given(st.integers(1, 9999))
def test_every_service_of_every_attempt_fits_a_dns_label(workers: int) -> None:
    name = "n" * longest_name(workers)
    assert len(f"{name}-a1234-worker-{workers - 1}") <= 63
    assert len(f"{name}-a1234-master-0") <= 64


@pytest.mark.parametrize("name", ["a", "a1", "a-b", "n0-0n"])
def test_plain_names_are_taken(name: str) -> None:
    assert read_job(a_manifest(metadata={"name": name})).name == name


@pytest.mark.parametrize("name", ["A", "1a", "-a", "a-", "a_b", "a.b", "a b", "\u00e9", "a\n"])
def test_other_names_are_refused(name: str) -> None:
    error = refusal_of(a_manifest(metadata={"name": name}))
    assert (error.pointer, error.value) == ("/metadata/name", name)


@pytest.mark.parametrize("namespace", ["A", "a.b", "-a", "a" * 64, ""])
def test_a_namespace_is_a_dns_label(namespace: str) -> None:
    error = refusal_of(a_manifest(metadata={"namespace": namespace}))
    assert error.pointer == "/metadata/namespace"


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("labels", "a b", "c"),
        ("labels", "a/b/c", "d"),
        ("labels", "", "c"),
        ("labels", "a", "x" * 64),
        ("labels", "a", "-x"),
        ("labels", "training-gateway.io/queue", "x"),
        ("annotations", "a b", "c"),
        ("annotations", "/a", "c"),
    ],
)
def test_keys_and_label_values_are_checked(kind: str, key: str, value: str) -> None:
    error = refusal_of(a_manifest(metadata={kind: {key: value}}))
    assert error.pointer == f"/metadata/{kind}/{key.replace('/', '~1')}"


def test_labels_and_foreign_annotations_are_taken_over() -> None:
    metadata = {"labels": {"a/b": "", "c": "d.E_f"}, "annotations": {"x.y/z": "any text: {}"}}
    spec = read_job(a_manifest(metadata=metadata))
    assert (spec.labels, spec.annotations) == (metadata["labels"], metadata["annotations"])
