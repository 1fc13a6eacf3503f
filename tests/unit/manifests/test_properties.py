"""Whatever is submitted is read into the same job by every way, or refused in words."""

import copy
import json
import re
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.errors import GatewayError
from gateway.manifests import ReadOptions, digest, read_documents, read_job, read_jobs
from gateway.schemas.job_spec import JobSpec
from tests.manifests import bad_manifests, good_manifests

calm = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
NUMBER = re.compile(r"[-+]?[\d_.]+([eE][-+]?\d+)?")
words = st.text(st.characters(codec="utf-8"), max_size=12).filter(
    # PyYAML writes text such as 0E0 without quotes, while Kubernetes and we read a number there.
    lambda word: not NUMBER.fullmatch(word)
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    words,
    st.sampled_from(["$X", "1", "0.5", "-1", "true", "Always", "nvidia.com/gpu", "\0", "[1"]),
)
junk = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
    max_leaves=6,
)
DOCUMENTS = [document for good in good_manifests() for document in read_documents(good.path)]
TEXTS = [good.path.read_bytes() for good in good_manifests()]
TEXTS += [bad.path.read_bytes() for bad in bad_manifests()]
ALLOWING = ReadOptions(allow_unsafe_templates=True, kueue_label="map")


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Give the path of every value inside a document."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    found = [(*path, key) for key, _ in inner]
    return found + [each for key, item in inner for each in places(item, (*path, key))]


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    """Give a good document in which a few values were replaced, renamed, added or removed."""
    document: dict[str, Any] = copy.deepcopy(draw(st.sampled_from(DOCUMENTS)))
    for _ in range(draw(st.integers(1, 3))):
        paths = places(document)
        if not paths:
            break
        *above, last = draw(st.sampled_from(paths))
        holder: Any = document
        for key in above:
            holder = holder[key]
        match draw(st.sampled_from(["replace", "replace", "remove", "add", "rename"])):
            case "replace":
                holder[last] = draw(junk)
            case "remove":
                del holder[last]
            case "rename" if isinstance(holder, dict):
                holder[draw(words)] = holder.pop(last)
            case _ if isinstance(holder, dict):
                holder[draw(words)] = draw(junk)
            case _:
                holder.append(draw(junk))
    return document


def read_or_refusal(source: object) -> list[JobSpec] | tuple[str, str, str]:
    """Give what a source is read as, or how it is refused; anything else is a failure."""
    try:
        return read_jobs(source, ALLOWING)
    except GatewayError as error:
        refusal = error
    assert refusal.hint
    assert refusal.detail
    told = {"value": refusal.value, "allowed": refusal.allowed, "pointer": refusal.pointer}
    assert json.dumps(told, allow_nan=False).encode()
    return refusal.code, refusal.pointer, refusal.detail


@calm
@given(mutated())
def test_a_mutated_document_is_read_or_refused_in_words(document: dict[str, Any]) -> None:
    result = read_or_refusal(document)
    if isinstance(result, list):
        (spec,) = result
        assert read_job(spec.manifest, ReadOptions(allow_unsafe_templates=True)) == spec
        assert JobSpec.model_validate_json(spec.model_dump_json()) == spec


@calm
@given(st.sampled_from(TEXTS), st.data())
def test_a_mutated_text_is_read_or_refused_in_words(text: bytes, data: st.DataObject) -> None:
    changed = bytearray(text)
    tokens = [b"\t", b"\0", b"*a", b"&a ", b"<<: ", b"!!", b"\n---\n", b"{", b"]", b"'", b'"', b"|"]
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(changed)))
        end = start + data.draw(st.integers(0, 10))
        changed[start:end] = data.draw(st.one_of(st.sampled_from(tokens), st.binary(max_size=4)))
    read_or_refusal(bytes(changed))


@calm
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_in_words(data: bytes) -> None:
    read_or_refusal(data)


@calm
@given(junk)
def test_any_value_is_read_or_refused_in_words(value: object) -> None:
    if not isinstance(value, str):  # a text may be the path of anything
        read_or_refusal(value)


@calm
@given(st.sampled_from(DOCUMENTS), st.dictionaries(words, junk, max_size=2))
def test_any_overrides_are_taken_or_refused_in_words(
    document: dict[str, Any], overrides: dict[str, Any]
) -> None:
    try:
        read_job(document, ReadOptions(allow_unsafe_templates=True, overrides=overrides))
    except GatewayError as error:
        refusal = error
    else:
        return
    assert refusal.hint


def shuffled(value: Any, data: st.DataObject) -> Any:
    """Give an equal document whose mappings are in another order."""
    if isinstance(value, dict):
        keys = data.draw(st.permutations(list(value)))
        return {key: shuffled(value[key], data) for key in keys}
    if isinstance(value, list):
        return [shuffled(item, data) for item in value]
    return value


@calm
@given(st.sampled_from(DOCUMENTS), st.data())
def test_the_order_of_keys_changes_nothing(document: dict[str, Any], data: st.DataObject) -> None:
    expected = digest(read_job(document, ALLOWING))
    assert digest(read_job(shuffled(document, data), ALLOWING)) == expected


@calm
@given(st.dictionaries(words, words, max_size=4))
def test_yaml_json_and_mapping_give_one_digest(env: dict[str, str]) -> None:
    document = {"name": "job", "image": "a", "env": {f"A_{key}": env[key] for key in env}}
    results = [
        read_or_refusal(source)
        for source in (
            document,
            json.dumps(document).encode(),
            yaml.safe_dump(document, sort_keys=False).encode(),
            yaml.safe_dump(document, default_flow_style=True, sort_keys=False).encode(),
        )
    ]
    assert results[1:] == results[:-1]


@calm
@given(st.sampled_from(DOCUMENTS), st.integers(0, 5))
def test_what_differs_has_another_digest(document: dict[str, Any], priority: int) -> None:
    options = ReadOptions(allow_unsafe_templates=True, kueue_label="map")
    spec = read_job(document, options)
    other = spec.model_copy(update={"priority": priority})
    assert (digest(other) == digest(spec)) == (other == spec)
