"""Jobs that differ only by name are not read twice, and come out as if they were."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import GatewayError, InvalidInput
from gateway.manifests import ReadOptions, digest, read_job
from gateway.manifests.remembering import MOST_KNOWN, KnownJobs, ReadJob, text_parts
from gateway.schemas.job_spec import JobSpec
from tests.unit.manifests.building import a_manifest

OPTIONS = ReadOptions()


class Reader:
    """Reads, and counts how often it was asked."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, document: Mapping[str, Any], options: ReadOptions) -> JobSpec:
        """Read in full."""
        self.count += 1
        return read_job(document, options)


def named(name: Any, **parts: Any) -> dict[str, Any]:
    return a_manifest(metadata={"name": name}, **parts)


def told(job: ReadJob) -> tuple[JobSpec, str, str]:
    """Give what is made of a job: its spec, the digest and the text that is stored."""
    return job.spec, job.digest, job.name.join(text_parts(job.known.spec))


def read_directly(
    document: Mapping[str, Any], options: ReadOptions = OPTIONS
) -> tuple[JobSpec, str, str]:
    spec = read_job(document, options)
    return spec, digest(spec), spec.model_dump_json()


def outcome(read: Callable[[dict[str, Any]], Any], document: dict[str, Any]) -> Any:
    try:
        return read(document)
    except GatewayError as error:
        return type(error), vars(error)


def test_like_documents_are_read_once() -> None:
    reader = Reader()
    known = KnownJobs(reader)
    for number in range(10):
        document = named(f"job-{number}", workers=2)
        assert told(known.read(document, OPTIONS)) == read_directly(document)
    assert reader.count == 1


@settings(deadline=None, max_examples=30)
@given(st.lists(st.text("ab-0A", max_size=60) | st.sampled_from(["a" * 41, "a" * 48, "a" * 49])))
def test_names_are_judged_as_if_nothing_were_remembered(names: list[str]) -> None:
    known = KnownJobs(read_job)

    def read(document: dict[str, Any]) -> Any:
        return told(known.read(document, OPTIONS))

    for name in ["first", *names]:
        for workers in (0, 2, 11):
            document = named(name, workers=workers)
            assert outcome(read, document) == outcome(read_directly, document)


def test_what_differs_in_anything_else_is_read_in_full() -> None:
    reader = Reader()
    known = KnownJobs(reader)
    image = {"image": "another:1"}
    documents = [named("a"), named("b", container=image), named("c", spec={"runPolicy": {}})]
    for document in documents:
        assert told(known.read(document, OPTIONS)) == read_directly(document)
    unsafe = ReadOptions(allow_unsafe_templates=True, overrides={"priority": 7})
    assert known.read(named("d"), unsafe).spec.priority == 7
    assert reader.count == 4


def test_an_override_of_the_name_and_the_short_form_are_read_in_full() -> None:
    reader = Reader()
    known = KnownJobs(reader)
    renaming = ReadOptions(overrides={"name": "other"})
    short = {"name": "short", "image": "train:1", "command": ["train"]}
    for _ in range(2):
        assert known.read(named("a"), renaming).spec.name == "other"
        assert known.read(short, OPTIONS).spec.name == "short"
    assert reader.count == 4


def test_refusals_are_not_remembered() -> None:
    known = KnownJobs(read_job)
    for name in ("a", "b"):
        with pytest.raises(InvalidInput):
            known.read(named(name, container={"name": "other"}), OPTIONS)
    assert known._known == {}


def test_memory_is_bounded() -> None:
    known = KnownJobs(read_job)
    for number in range(MOST_KNOWN + 2):
        known.read(named("a", container={"image": f"train:{number}"}), OPTIONS)
    assert len(known._known) <= MOST_KNOWN
    known.read(named("a", container={"args": ["x" * 20_000]}), OPTIONS)
    assert all(b"xxxx" not in key for key in known._known)


def test_a_remembered_job_shares_nothing_that_a_caller_may_change() -> None:
    known = KnownJobs(read_job)
    first = known.read(named("a"), OPTIONS).spec
    second = known.read(named("b"), OPTIONS).spec
    second.manifest["metadata"]["name"] = "changed"
    assert first.manifest["metadata"]["name"] == "a"
    assert known.read(named("c"), OPTIONS).spec.manifest["metadata"]["name"] == "c"
