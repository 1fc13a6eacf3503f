"""Jobs are found among the documents of a source, in order; what is none is named by its kind."""

from typing import Any

import pytest

from gateway.errors import GatewayError, InvalidInput
from gateway.manifests import read_documents, read_jobs
from gateway.manifests.documents import flatten, is_manifest, require_job_kind
from gateway.schemas.suggesting import LOOSE, NEAR, closest, did_you_mean


def job(name: str) -> dict[str, Any]:
    return {"name": name, "image": "a"}


def listed(*items: Any, kind: str = "List") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "items": list(items)}


def names(documents: list[Any]) -> list[str]:
    return [document["name"] for document in flatten(documents)]


@pytest.mark.parametrize(
    "documents",
    [
        [job("a"), job("b"), job("c")],
        [[job("a"), job("b"), job("c")]],
        [[[job("a")], [[job("b")], job("c")]]],
        [None, job("a"), None, [None, job("b")], [], job("c")],
        [listed(job("a"), job("b"), job("c"))],
        [listed(listed(job("a")), [job("b")], listed(kind="PyTorchJobList"), job("c"))],
        [job("a"), listed(job("b"), kind="PyTorchJobList"), job("c")],
        [listed(), listed(job("a"), None, job("b")), [job("c")]],
    ],
)
def test_jobs_are_found_in_order_however_they_are_packed(documents: list[Any]) -> None:
    assert names(documents) == ["a", "b", "c"]


def test_lists_nested_as_deep_as_a_document_may_be_are_unpacked() -> None:
    packed: Any = job("a")
    for _ in range(5000):
        packed = [packed]
    assert names([packed]) == ["a"]


@pytest.mark.parametrize("documents", [[], [None], [[]], [[None, []]], [listed()], [[listed()]]])
def test_a_source_without_a_job_is_refused(documents: list[Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        flatten(documents)
    assert caught.value.detail == "there is no job in what was submitted"
    assert caught.value.allowed == ("PyTorchJob", "short form")


@pytest.mark.parametrize(
    "document", ["text", 5, True, [5], [[["a"]]], {"kind": "List", "items": 1}]
)
def test_what_is_no_mapping_is_no_job(document: object) -> None:
    with pytest.raises(InvalidInput, match="belongs here, not"):
        flatten([document])


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        ("pytorchjob", "did you mean 'PyTorchJob'?"),
        ("PytorchJob", "did you mean 'PyTorchJob'?"),
        ("PyTorchJobs", "did you mean 'PyTorchJob'?"),
        ("AppWrapper", "submit the PyTorchJob that it wraps"),
        ("TrainJob", "TrainJob is not built; submit a PyTorchJob of kubeflow.org/v1"),
        ("Job", "submit a PyTorchJob, or the short form (image, command, workers)"),
        (
            "Service",
            "apply the Service with kubectl first, and submit only the PyTorchJob documents here",
        ),
        (
            "List",
            "apply the List with kubectl first, and submit only the PyTorchJob documents here",
        ),
    ],
)
def test_an_object_of_another_kind_is_named_with_its_place_among_all(kind: str, hint: str) -> None:
    other = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}}
    with pytest.raises(InvalidInput) as caught:
        flatten([job("a"), other])
    error = caught.value
    assert (
        error.detail
        == f"/kind: document 2 of 2 is of kind {kind}; only PyTorchJob is submitted here"
    )
    assert (error.pointer, error.value, error.allowed) == ("/kind", kind, ("PyTorchJob",))
    assert error.hint == hint


@pytest.mark.parametrize(
    ("document", "hint"),
    [
        ({"metadata": {}}, "write kind: PyTorchJob"),
        ({"spec": {}, "Kind": "PyTorchJob"}, "did you mean 'kind' instead of 'Kind'?"),
        ({"spec": {}, "kinds": "PyTorchJob"}, "did you mean 'kind' instead of 'kinds'?"),
        ({"kind": None, "spec": {}}, "write kind: PyTorchJob"),
        ({"kind": 5}, "write kind: PyTorchJob"),
    ],
)
def test_an_object_without_a_kind_says_how_to_give_it(document: dict[str, Any], hint: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        flatten([document])
    assert caught.value.hint == hint
    assert "is of kind that is missing or no text" in caught.value.detail


@pytest.mark.parametrize(
    ("version", "word"),
    [
        ("kubeflow.org/v1beta1", "kubeflow.org/v1beta1"),
        ("v1", "v1"),
        ("", ""),
        (None, "that is missing or no text"),
        (1, "that is missing or no text"),
        ("kubeflow.org/v1 ", "kubeflow.org/v1 "),
    ],
)
def test_another_api_version_is_refused_with_the_one_that_is_taken(
    version: object, word: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        require_job_kind({"apiVersion": version, "kind": "PyTorchJob"}, "the document")
    error = caught.value
    assert error.detail == (
        f"/apiVersion: the document is of API version {word}, not kubeflow.org/v1"
    )
    assert (error.pointer, error.hint) == ("/apiVersion", "write apiVersion: kubeflow.org/v1")


@pytest.mark.parametrize("key", ["apiVersion", "kind", "metadata", "spec"])
def test_one_word_of_an_object_makes_a_document_one(key: str) -> None:
    assert is_manifest({key: None, "name": "a"})
    assert not is_manifest({"name": "a", "image": "b", "status": {}})


def test_the_first_wrong_job_of_several_refuses_all_and_is_numbered() -> None:
    with pytest.raises(GatewayError) as caught:
        read_jobs([job("a"), {"name": "b"}, {"name": "C", "image": "a"}])
    assert caught.value.detail == "document 2 of 3: /image: a job needs an image"
    assert caught.value.pointer == "/image"
    with pytest.raises(GatewayError) as alone:
        read_jobs({"name": "b"})
    assert alone.value.detail == "/image: a job needs an image"


def test_many_jobs_come_out_as_many() -> None:
    source = [job(f"n{index}") for index in range(300)]
    assert [document["name"] for document in read_documents(source)] == [
        each["name"] for each in source
    ]


@pytest.mark.parametrize(
    ("word", "known", "near"),
    [
        ("queu", ["queue", "quota"], "queue"),
        ("start-timeout-seconds", ["start_timeout_seconds"], "start_timeout_seconds"),
        ("START_TIMEOUT", ["start-timeout", "start"], "start-timeout"),
        ("nodeselector", ["nodeName", "nodeSelector"], "nodeSelector"),
        ("xyz", ["queue"], ""),
        ("", ["queue"], ""),
        ("queue", [], ""),
        ("ab", ["a-b", "abc"], "a-b"),
    ],
)
def test_the_nearest_word_is_found_by_spelling_first(
    word: str, known: list[str], near: str
) -> None:
    assert closest(word, known) == near
    otherwise = "look again"
    assert did_you_mean(word, known, otherwise) == (
        f"did you mean {near!r}?" if near else otherwise
    )


def test_a_strict_cutoff_takes_typos_only() -> None:
    assert closest("toleration", ["tolerations"], NEAR) == "tolerations"
    assert closest("hostAlias", ["hostAliases"], NEAR) == "hostAliases"
    assert closest("hostPath", ["hostPID"], NEAR) == ""
    assert closest("hostPath", ["hostPID"], LOOSE) == "hostPID"
