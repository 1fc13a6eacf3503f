"""The table of manifests: REST and SDK accept and refuse exactly what the reader does."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import GatewayError
from gateway.manifests import ReadOptions, digest, read_documents, read_job, read_jobs
from gateway.schemas.job_spec import JobSpec
from tests.acceptance.conftest import Served
from tests.manifests import BadManifest, GoodManifest, bad_manifests, good_manifests


def facts(error: GatewayError) -> tuple[Any, ...]:
    return error.code, error.pointer, error.hint


def refusal_of(path: Path) -> GatewayError:
    """Give what the reader itself says."""
    with pytest.raises(GatewayError) as caught:
        read_jobs(path, ReadOptions())
    return caught.value


@pytest.mark.parametrize("bad", bad_manifests(), ids=lambda bad: bad.name)
def test_a_bad_manifest_is_refused_alike_by_rest_and_sdk(shared: Served, bad: BadManifest) -> None:
    expected = refusal_of(bad.path)
    assert type(expected).__name__ == bad.error

    content_type = "application/json" if bad.path.suffix == ".json" else "application/yaml"
    answer = shared.http().post(
        "/jobs", content=bad.path.read_bytes(), headers={"Content-Type": content_type}
    )
    document = answer.json()
    told = tuple(document.get(field, "") for field in ("code", "pointer", "hint"))
    assert (answer.status_code, told) == (expected.status, facts(expected))

    with pytest.raises(GatewayError) as caught:
        shared.sdk().submit(bad.path)
    assert facts(caught.value) == facts(expected)
    assert type(caught.value) is type(expected)


def is_plain(good: GoodManifest) -> bool:
    """Whether default settings take it, as one job."""
    return not good.is_unsafe and not good.is_kueue and len(read_documents(good.path)) == 1


@pytest.mark.parametrize(
    "good", [good for good in good_manifests() if is_plain(good)], ids=lambda good: good.name
)
def test_a_good_manifest_gives_the_same_job_by_rest_and_sdk(
    shared: Served, good: GoodManifest
) -> None:
    (document,) = read_documents(good.path)
    queue = {"queue": "default"}
    expected = read_job(document, ReadOptions(overrides=queue))
    http, client = shared.http("root"), shared.sdk("root")
    answer = http.post("/jobs", params={"dry_run": "plan", **queue}, json=document)
    if answer.status_code == 422:
        assert answer.json()["code"] == "never_fits", answer.text
        return
    assert answer.status_code == 200, answer.text
    planned = client.plan(good.path, queue="default")
    assert answer.json()["spec"] == planned.spec
    stored = JobSpec.model_validate_json(json.dumps(planned.spec))
    assert digest(stored) == digest(expected)
