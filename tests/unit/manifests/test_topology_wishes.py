"""A gang says how near its pods are to be by a level; it is kept as the node label it means."""

import json
from typing import Any

import pytest

from gateway.db.request_shapes import decode, encode
from gateway.db.request_shapes import digest as class_digest
from gateway.errors import InvalidInput
from gateway.manifests import ReadOptions, digest, read_job
from gateway.manifests.options import TOPOLOGY_LABELS
from gateway.service.gangs import request_of
from tests.unit.manifests.building import a_manifest, annotated


def levels(document: dict[str, Any], **options: Any) -> set[tuple[str, bool]]:
    spec = read_job(document, ReadOptions(**options))
    return {(each.level, each.is_level_required) for each in spec.pod_sets}


@pytest.mark.parametrize("level", TOPOLOGY_LABELS)
def test_every_level_is_a_node_label_that_all_pod_sets_share(level: str) -> None:
    document = a_manifest(metadata=annotated(topology_level=level), workers=2)
    assert levels(document) == {(TOPOLOGY_LABELS[level], True)}
    request = request_of(read_job(document))
    assert {each.level for each in request.pod_sets} == {TOPOLOGY_LABELS[level]}


@pytest.mark.parametrize(("mode", "is_required"), [("required", True), ("preferred", False)])
def test_a_mode_says_whether_it_must_be(mode: str, is_required: bool) -> None:  # noqa: FBT001
    overrides = {"topology": {"level": "rack", "mode": mode}}
    assert levels(a_manifest(), overrides=overrides) == {(TOPOLOGY_LABELS["rack"], is_required)}


def test_a_site_names_its_own_labels() -> None:
    labels = {**TOPOLOGY_LABELS, "rack": "example.com/row"}
    overrides = {"topology_level": "rack"}
    assert levels(a_manifest(), overrides=overrides, topology_labels=labels) == {
        ("example.com/row", True)
    }


def test_a_level_without_a_label_here_is_refused_with_those_that_have_one() -> None:
    with pytest.raises(InvalidInput, match="no node label is set for level 'block'") as caught:
        levels(
            a_manifest(),
            overrides={"topology_level": "block"},
            topology_labels={"rack": "example.com/rack"},
        )
    assert caught.value.allowed == ("rack",)
    assert "TRAINING_GATEWAY_TOPOLOGY_LABELS" in caught.value.hint


@pytest.mark.parametrize(
    ("overrides", "pointer"),
    [
        ({"topology_mode": "preferred"}, "/topology_mode"),
        ({"topology_level": "zone"}, "/topology_level"),
        ({"topology": {"level": "rack", "mode": "always"}}, "/topology/mode"),
        ({"topology": {"levels": "rack"}}, "/topology/levels"),
    ],
)
def test_what_says_nothing_is_refused(overrides: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        levels(a_manifest(), overrides=overrides)
    assert caught.value.pointer == pointer


def test_jobs_without_a_level_keep_the_digest_that_they_always_had() -> None:
    plain = read_job(a_manifest())
    assert "level" not in plain.model_dump_json(exclude_defaults=True)
    assert digest(plain) != digest(
        read_job(a_manifest(), ReadOptions(overrides={"topology_level": "rack"}))
    )


def slices(pods: int, **options: Any) -> set[tuple[tuple[str, int], ...]]:
    spec = read_job(a_manifest(workers=pods - 1), ReadOptions(**options))
    assert {each.slices for each in request_of(spec).pod_sets} == {spec.pod_sets[0].slices}
    return {each.slices for each in spec.pod_sets}


RACK, BLOCK = TOPOLOGY_LABELS["rack"], TOPOLOGY_LABELS["block"]


@pytest.mark.parametrize(
    ("level", "size", "expected"),
    [
        ("rack", 4, ((RACK, 4),)),
        (["rack"], [8], ((RACK, 8),)),
        ("block, rack", "4,2", ((BLOCK, 4), (RACK, 2))),
        (["block", "rack"], [8, 8], ((BLOCK, 8), (RACK, 8))),
    ],
)
def test_slices_are_levels_with_numbers_of_pods(
    level: object, size: object, expected: tuple[tuple[str, int], ...]
) -> None:
    overrides = {"topology": {"slice_level": level, "slice_size": size}}
    assert slices(8, overrides=overrides) == {expected}
    spec = read_job(a_manifest(workers=7), ReadOptions(overrides=overrides))
    assert read_job(spec.manifest) == spec


def test_annotations_say_the_same() -> None:
    annotations = annotated(topology_slice_level="block,rack", topology_slice_size="4,2")
    spec = read_job(a_manifest(metadata=annotations, workers=3))
    assert spec.pod_sets[1].slices == ((BLOCK, 4), (RACK, 2))


@pytest.mark.parametrize(
    ("level", "size", "pointer", "words"),
    [
        ("rack", None, "/topology/slice_level", "says nothing alone"),
        (None, 4, "/topology/slice_size", "says nothing alone"),
        ("rack", 3, "/topology/slice_size", "8 pods cannot be cut into slices of 3"),
        ("rack", 16, "/topology/slice_size", "8 pods cannot be cut into slices of 16"),
        ("block,rack", "4,3", "/topology/slice_size", "4 pods cannot be cut into slices of 3"),
        ("block,rack", 4, "/topology/slice_level", "as many levels as sizes"),
        ([], [], "/topology/slice_level", "give one for each"),
    ],
)
def test_slices_that_do_not_cut_the_gang_are_refused(
    level: object, size: object, pointer: str, words: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        slices(8, overrides={"topology": {"slice_level": level, "slice_size": size}})
    assert words in f"{caught.value.detail} {caught.value.hint}"
    assert caught.value.pointer.replace("topology_", "topology/") == pointer


def test_a_slice_of_a_level_without_a_label_is_refused() -> None:
    overrides = {"topology": {"slice_level": "block", "slice_size": 4}}
    with pytest.raises(InvalidInput, match="no node label is set for level 'block'"):
        slices(8, overrides=overrides, topology_labels={"rack": "example.com/rack"})


def test_slices_change_the_digest_only_where_they_are() -> None:
    plain = read_job(a_manifest())
    overrides = {"topology": {"slice_level": "rack", "slice_size": 1}}
    assert digest(plain) != digest(read_job(a_manifest(), ReadOptions(overrides=overrides)))
    assert "slices" not in plain.model_dump_json(exclude_defaults=True)


@pytest.mark.parametrize(
    ("mode", "is_required"), [({}, True), ({"avoid_mode": "preferred"}, False)]
)
def test_nodes_to_avoid_are_names_in_no_order(mode: dict[str, str], is_required: bool) -> None:  # noqa: FBT001
    overrides = {"topology": {"avoid_nodes": ["b.example", "a", "a"], **mode}}
    spec = read_job(a_manifest(workers=1), ReadOptions(overrides=overrides))
    assert read_job(spec.manifest) == spec
    told = {(each.avoid, each.is_avoid_required) for each in request_of(spec).pod_sets}
    assert told == {(("a", "b.example"), is_required)}
    assert digest(spec) != digest(read_job(a_manifest(workers=1)))


def test_an_annotation_lists_nodes_with_commas() -> None:
    spec = read_job(a_manifest(metadata=annotated(topology_avoid_nodes="n2, n1")))
    assert spec.pod_sets[0].avoid == ("n1", "n2")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"avoid_nodes": ["Bad Name"]}, "names no node"),
        ({"avoid_mode": "preferred"}, "says nothing without"),
        ({"avoid_nodes": [], "avoid_mode": "required"}, "says nothing without"),
    ],
)
def test_nodes_to_avoid_that_say_nothing_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read_job(a_manifest(), ReadOptions(overrides={"topology": fields}))


def test_an_empty_list_of_nodes_avoids_nobody() -> None:
    overrides: dict[str, Any] = {"topology": {"avoid_nodes": []}}
    plain = read_job(a_manifest())
    assert request_of(read_job(a_manifest(), ReadOptions(overrides=overrides))) == request_of(plain)
    assert "avoid" not in plain.model_dump_json(exclude_defaults=True)


@pytest.mark.parametrize(
    "wish",
    [
        {"slice_level": "rack", "slice_size": 1},
        {"avoid_nodes": ["n1"]},
        {"avoid_nodes": ["n1"], "avoid_mode": "preferred"},
    ],
)
def test_a_class_is_told_apart_by_its_wish_and_read_again_with_it(wish: dict[str, Any]) -> None:
    plain = encode(request_of(read_job(a_manifest())))
    assert not {"slices", "avoid", "is_avoid_required"} & plain[0].keys()
    request = request_of(read_job(a_manifest(), ReadOptions(overrides={"topology": wish})))
    # Stored as JSON, in which tuples become lists.
    stored = json.loads(json.dumps(encode(request)))
    assert decode(stored) == request
    assert class_digest(stored) != class_digest(plain)
