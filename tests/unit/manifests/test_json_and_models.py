"""JSON is read strictly, and model objects of any client become what the API calls them."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any, ClassVar

import pytest
from kubernetes.client import V1Container, V1ContainerPort, V1ObjectMeta, V1PodSpec, V1Probe

from gateway.errors import GatewayError, InvalidInput, MalformedBody
from gateway.manifests import read_documents
from gateway.manifests.json_text import read_json
from gateway.manifests.model_objects import is_model, model_to_plain


def refusal(source: object) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        read_documents(source)
    return caught.value


@pytest.mark.parametrize(
    ("text", "detail", "hint"),
    [
        ('{"name": "a", "name": "b"}', "the key 'name' is given twice", "keep one of the two"),
        (
            '{"name": "a", "env": {"A": "1", "B": "2", "A": "1"}}',
            "the key 'A' is given twice",
            "keep one of the two",
        ),
        ('[{"a": 1}, {"b": {"": 1, "": 2}}]', "the key '' is given twice", "keep one of the two"),
        ('{"a": NaN}', "NaN is not a JSON number", "write a finite number"),
        ('{"a": [Infinity]}', "Infinity is not a JSON number", "write a finite number"),
        ('{"a": -Infinity}', "-Infinity is not a JSON number", "write a finite number"),
        ('{"a": ' + "9" * 5000 + "}", "a number has too many digits", "write a smaller one"),
        ("[" * 100_000, "the JSON is nested too deeply", "flatten it"),
        ('{"a":' * 45_000, "the JSON is nested too deeply", "flatten it"),
        (
            '{"' + "k" * 99 + '": 1, "' + "k" * 99 + '": 2}',
            "the key '" + "k" * 60 + "' is given twice",
            "keep one of the two",
        ),
    ],
)
def test_json_that_python_would_take_is_refused_where_it_means_nothing(
    text: str, detail: str, hint: str
) -> None:
    error = refusal(text)
    assert (type(error), error.detail, error.hint) == (MalformedBody, detail, hint)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', "line 3, column 3"),
        ('{"a": [1, 2}', "line 1, column 12"),
        ('{"a": "b', "line 1, column 7"),
        ('{"a": 1} trailing', "line 1, column 10"),
        ('["a"', "line 1, column 5"),
    ],
)
def test_broken_json_is_told_with_line_and_column(text: str, where: str) -> None:
    error = refusal(text)
    assert isinstance(error, MalformedBody)
    assert error.detail.startswith(where)
    assert error.hint == "check the commas, quotes and brackets before this place"


def test_what_is_no_json_may_still_be_yaml_in_flow_style() -> None:
    assert read_documents('{"name": "a",}') == [{"name": "a"}]
    assert read_documents("[{name: a}, {name: b},]") == [{"name": "a"}, {"name": "b"}]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-0", 0),
        ("1.0", 1.0),
        ("1e3", 1000.0),
        ('"\\u00e9"', "\u00e9"),
        ('"\\ud83d\\ude00"', "\U0001f600"),
        ("null", None),
        ("[]", []),
        (' {"a" : {} } ', {"a": {}}),
    ],
)
def test_json_values_are_read_as_they_are(text: str, value: object) -> None:
    assert read_json(text) == value


def test_half_of_a_character_in_a_json_escape_is_refused_with_its_place() -> None:
    error = refusal('{"name": "a", "env": {"A": "\\ud83d"}}')
    assert (error.pointer, error.hint) == ("/env/A", "remove it")


class Model:
    """A model object as the OpenAPI generator writes them."""

    attribute_map: ClassVar[Mapping[str, str]] = {"pod_name": "podName", "inner": "inner"}

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

    def to_dict(self) -> dict[str, Any]:
        raise AssertionError("it would give Python's names")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Model(pod_name="a"), {"podName": "a"}),
        (Model(), {}),
        (Model(inner=Model(pod_name="b")), {"inner": {"podName": "b"}}),
        (Model(inner=[Model(pod_name="b"), 1]), {"inner": [{"podName": "b"}, 1]}),
        (Model(inner={"k": Model(pod_name="")}), {"inner": {"k": {"podName": ""}}}),
        (Model(pod_name=None, inner=False), {"inner": False}),
        ((Model(pod_name="a"),), [{"podName": "a"}]),
        (Model(inner=date(2030, 1, 31)), {"inner": "2030-01-31"}),
        (
            Model(inner=datetime(2030, 1, 31, 18, tzinfo=UTC)),
            {"inner": "2030-01-31T18:00:00+00:00"},
        ),
    ],
)
def test_a_model_object_is_read_by_the_names_of_the_api(value: Any, expected: Any) -> None:
    assert model_to_plain(value) == expected


def test_models_of_the_kubernetes_client_lose_nothing_that_was_set() -> None:
    pod = V1PodSpec(
        host_network=False,
        node_selector={"pool": "gpu"},
        containers=[
            V1Container(
                name="pytorch",
                ports=[V1ContainerPort(container_port=80, host_port=0)],
                liveness_probe=V1Probe(initial_delay_seconds=0),
            )
        ],
    )
    assert model_to_plain(pod) == {
        "hostNetwork": False,
        "nodeSelector": {"pool": "gpu"},
        "containers": [
            {
                "name": "pytorch",
                "ports": [{"containerPort": 80, "hostPort": 0}],
                "livenessProbe": {"initialDelaySeconds": 0},
            }
        ],
    }


@pytest.mark.parametrize("value", [{}, [], "a", None, object(), Model])
def test_what_only_looks_like_a_model_is_left_alone(value: object) -> None:
    assert is_model(value) is (value is Model)
    assert not is_model({"attribute_map": {}, "to_dict": None})
    assert is_model(V1ObjectMeta(name="a"))


def test_a_model_that_holds_itself_is_refused() -> None:
    model = Model()
    vars(model)["inner"] = [model]
    with pytest.raises(InvalidInput, match="nested too deeply") as caught:
        model_to_plain(model)
    assert caught.value.hint == "flatten it"


def test_a_mapping_may_hold_models_and_becomes_one_document() -> None:
    document = {
        "kind": "PyTorchJob",
        "metadata": V1ObjectMeta(name="a", labels={"b": "c"}),
        "apiVersion": "kubeflow.org/v1",
    }
    assert read_documents(document) == [
        {
            "kind": "PyTorchJob",
            "metadata": {"name": "a", "labels": {"b": "c"}},
            "apiVersion": "kubeflow.org/v1",
        }
    ]
