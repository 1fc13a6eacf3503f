"""Every refused manifest of the collection is refused as its table says: class, place, hint."""

import json

import pytest

from gateway.errors import BodyTooLarge, GatewayError, MalformedBody
from gateway.manifests import read_documents, read_jobs
from tests.manifests import BadManifest, bad_manifests

every_bad = pytest.mark.parametrize("bad", bad_manifests(), ids=lambda bad: bad.name)


def refusal(source: object) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        read_jobs(source)
    return caught.value


@every_bad
def test_a_bad_manifest_is_refused_with_place_and_hint(bad: BadManifest) -> None:
    error = refusal(bad.path)
    assert type(error).__name__ == bad.error
    assert error.pointer == bad.pointer
    assert bad.hint in error.hint
    assert error.pointer in error.detail


@every_bad
def test_json_is_refused_exactly_as_yaml(bad: BadManifest) -> None:
    error = refusal(bad.path)
    if isinstance(error, MalformedBody | BodyTooLarge):
        return
    try:
        documents = read_documents(bad.path)
    except GatewayError:
        return
    again = refusal(json.dumps(documents))
    assert vars(again) == vars(error)


def test_the_collection_is_complete() -> None:
    assert len(bad_manifests()) >= 30
    folder = bad_manifests()[0].path.parent
    files = {each for each in folder.iterdir() if each.name != "expected.yaml"}
    assert {each.path for each in bad_manifests()} == files


def test_a_refusal_shows_the_value_and_what_is_allowed() -> None:
    bad = next(each for each in bad_manifests() if each.name == "restart-policy-typo.yaml")
    error = refusal(bad.path)
    assert error.value == "OnFailiure"
    assert error.allowed == ("Always", "OnFailure", "Never", "ExitCode")
