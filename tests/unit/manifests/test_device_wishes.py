"""NICs per pod or per GPU, and NVLink partitions, as a job may ask for them."""

import json
from typing import Any

import pytest

from gateway.core.vocabulary import PairRule, PartitionRule
from gateway.db.request_shapes import decode, digest, encode
from gateway.manifests import digest as body_digest
from gateway.manifests import read_job
from gateway.manifests.reader import canonical
from gateway.service.gangs import request_of
from tests.unit.manifests.building import a_manifest, annotated, refusal_of


def job(devices: dict[str, Any] | None = None, **resources: Any) -> dict[str, Any]:
    """Give a job of one pod in the short form; two GPUs unless said otherwise."""
    asked = {"gpu": 2, **resources}
    return {"name": "a", "image": "a", "resources": asked, "devices": devices or {}}


def nics_of(document: dict[str, Any]) -> int:
    return read_job(document).pod_sets[0].per_pod.get("rdma", 0)


@pytest.mark.parametrize(
    ("devices", "gpus", "nics"),
    [
        ({"nics": 3}, 2, 3),
        ({"nics": 0}, 2, 0),
        ({"nics_per_gpu": 1}, 4, 4),
        ({"nics_per_gpu": 0.5}, 4, 2),
        ({"nics_per_gpu": 0.5}, 1, 1),
        ({"nics-per-gpu": 0.5}, 3, 2),
        ({"nics_per_gpu": 4}, 8, 32),
        # In floats a tenth of ten thousandths would come out above one.
        ({"nics_per_gpu": 0.1}, 10, 1),
        ({}, 4, 0),
    ],
)
def test_nics_are_counted_per_pod_or_per_gpu(devices: dict[str, Any], gpus: int, nics: int) -> None:
    assert nics_of(job(devices, gpu=gpus)) == nics


def test_annotations_say_the_same_as_the_short_form() -> None:
    gpus = {"resources": {"limits": {"nvidia.com/gpu": 4}}}
    notes = annotated(nics_per_gpu="0.5", partition="prefer", devices_pair="switch")
    pod_set = read_job(a_manifest(gpus, metadata=notes)).pod_sets[0]
    assert pod_set.per_pod["rdma"] == 2
    assert pod_set.partition is PartitionRule.PREFER
    assert pod_set.pair is PairRule.SWITCH


def test_a_template_that_asks_for_as_many_nics_agrees() -> None:
    assert nics_of(job({"nics_per_gpu": 1}, rdma=2)) == 2


def test_pods_without_gpus_get_no_nics_beside_pods_that_have_some() -> None:
    gpus = {"resources": {"limits": {"nvidia.com/gpu": 4}}}
    # A copy, for the building block gives Master and Workers one and the same container.
    text = json.dumps(a_manifest(gpus, metadata=annotated(nics="2"), workers=1))
    manifest = json.loads(text)
    master = manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    master["containers"][0]["resources"] = {}
    sets = {each.name: each for each in read_job(manifest).pod_sets}
    assert "rdma" not in sets["Master"].per_pod
    assert sets["Worker"].per_pod["rdma"] == 2


@pytest.mark.parametrize(
    ("document", "pointer", "words"),
    [
        (job({"nics": 1}, rdma=2), "/nics", "its template asks for 2"),
        (job({"nics": 1, "nics_per_gpu": 1}), "/nics_per_gpu", "per pod and per GPU"),
        (job({"nics_per_gpu": 40}), "/nics_per_gpu", "80 NICs for a pod"),
        (job({"nics": 1}, gpu=0), "/nics", "no pod asks for GPUs"),
        (job({"nics_per_gpu": 1}, gpu=0), "/nics_per_gpu", "no pod asks for GPUs"),
        (job({"partition": "honor"}), "/devices/partition", "honor"),
        (job({"required": True}), "/pair_required", "without a pair rule"),
    ],
)
def test_wishes_that_contradict_are_refused_with_their_place(
    document: dict[str, Any], pointer: str, words: str
) -> None:
    error = refusal_of(document)
    assert error.pointer == pointer
    assert words in str(error.detail)
    assert error.hint


def test_reading_the_stored_form_again_gives_the_same() -> None:
    spec = read_job(job({"nics_per_gpu": 1, "partition": "honour", "pair": "switch"}))
    assert read_job(spec.manifest) == spec


def test_a_job_without_a_partition_keeps_the_text_that_it_had_before_there_were_any() -> None:
    plain, partitioned = job(), job({"partition": "prefer"})
    assert "partition" not in canonical(read_job(plain))
    assert body_digest(read_job(plain)) != body_digest(read_job(partitioned))


def test_a_class_is_told_apart_by_its_partition_and_read_again_with_it() -> None:
    plain = request_of(read_job(job()))
    honouring = request_of(read_job(job({"partition": "honour"})))
    assert "partition" not in encode(plain)[0]
    assert decode(encode(plain)) == plain
    assert decode(encode(honouring)) == honouring
    assert digest(encode(plain)) != digest(encode(honouring))
