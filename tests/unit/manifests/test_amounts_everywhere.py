"""An amount is judged alike wherever a pod can ask for one, and the cluster gets what it takes."""

from typing import Any

import pytest

from gateway.core.vocabulary import UNLIMITED
from gateway.errors import InvalidInput, NotSupportedYet
from gateway.manifests import read_job
from gateway.manifests.quantities import parse_quantity
from tests.unit.manifests.building import POD, a_container, a_manifest, master_of, refusal_of

UNSET = "a variable was probably left unset: fill it in or remove the line"
FORM = "write a number with an optional unit, for example 4, 500m or 64Gi"
CONTAINER_PLACES = [
    f"{kind}/0/resources/{side}"
    for kind in ("containers", "initContainers")
    for side in ("requests", "limits")
]
POD_PLACES = ["resources/requests", "resources/limits", "overhead"]


def asking_at(place: str, name: str, amount: Any) -> dict[str, Any]:
    """Give a manifest that asks for an amount at one place of its pod."""
    if place == "overhead":
        return a_manifest(pod={"overhead": {name: amount}})
    kind, _, side = place.partition("/0/resources/")
    if not side:
        return a_manifest(pod={"resources": {place.removeprefix("resources/"): {name: amount}}})
    resources = {"resources": {side: {name: amount}}}
    if kind == "containers":
        return a_manifest(resources)
    return a_manifest(pod={kind: [a_container(**{"name": "init", **resources})]})


BAD_AMOUNTS: list[tuple[Any, str, str]] = [
    ("", "is empty", UNSET),
    ("  ", "is empty", UNSET),
    (None, "is empty", UNSET),
    ("$CPUS", "is not a quantity", "a variable was left unexpanded"),
    ("${CPUS:-4}", "is not a quantity", "a variable was left unexpanded"),
    ("four", "is not a quantity", FORM),
    ("4,5", "is not a quantity", FORM),
    ("1_000", "is not a quantity", FORM),
    ("0x10", "is not a quantity", FORM),
    ("4 cores", "is not a quantity", "write 4cores"),
    ("\u0664", "is not a quantity", FORM),
    ("4K", "has the unknown unit 'K'", "did you mean 4k?"),
    ("4ki", "has the unknown unit 'ki'", "did you mean 4Ki?"),
    ("4GiB", "has the unknown unit 'GiB'", "did you mean 4Gi?"),
    ("4GB", "has the unknown unit 'GB'", "did you mean 4G?"),
    ("4gigs", "has the unknown unit 'gigs'", FORM),
    ("-1", "cannot be negative", "ask for 0 or more"),
    ("-1m", "cannot be negative", "ask for 0 or more"),
    (-1, "cannot be negative", "ask for 0 or more"),
    (-0.5, "cannot be negative", "ask for 0 or more"),
    ("1e30", "is more than can be counted", "ask for less"),
    ("9" * 65, "is too long", FORM),
    (True, "is not a quantity", FORM),
    ([1], "is not a quantity", FORM),
    ({"value": 1}, "is not a quantity", FORM),
]


@pytest.mark.parametrize("place", [*CONTAINER_PLACES, *POD_PLACES])
@pytest.mark.parametrize(("amount", "detail", "hint"), BAD_AMOUNTS)
def test_a_wrong_amount_is_refused_at_every_place_alike(
    place: str, amount: Any, detail: str, hint: str
) -> None:
    error = refusal_of(asking_at(place, "cpu", amount))
    assert type(error) is InvalidInput
    assert error.pointer == f"{POD}/{place}/cpu"
    assert detail in error.detail
    assert error.hint.startswith(hint)


@pytest.mark.parametrize("place", [*CONTAINER_PLACES, *POD_PLACES])
@pytest.mark.parametrize(
    ("amount", "millis", "stored"),
    [
        ("1500m", 1500, "1500m"),
        (" 2 ", 2000, "2"),
        ("2\n", 2000, "2"),
        (0.5, 500, "0.5"),
        (2, 2000, 2),
        ("2e1", 20_000, "2e1"),
        ("0.0001", 1, "0.0001"),
    ],
)
def test_a_right_amount_is_counted_and_stored_as_the_cluster_takes_it(
    place: str, amount: Any, millis: int, stored: Any
) -> None:
    document = asking_at(place, "cpu", amount)
    assert master_of(document).per_pod == {"cpu": millis}
    value: Any = read_job(document).manifest["spec"]["pytorchReplicaSpecs"]["Master"]
    for key in f"template/spec/{place}".split("/"):
        value = value[int(key) if key.isdecimal() else key]
    assert value == {"cpu": stored}


@pytest.mark.parametrize("place", [*CONTAINER_PLACES, *POD_PLACES])
def test_nothing_asked_for_is_nothing_counted(place: str) -> None:
    for zero in (0, "0", "-0", "0m", 0.0):
        assert master_of(asking_at(place, "cpu", zero)).per_pod == {}


@pytest.mark.parametrize("place", CONTAINER_PLACES)
@pytest.mark.parametrize(
    ("name", "kind", "hint"),
    [
        ("gpu", InvalidInput, "write nvidia.com/gpu"),
        ("gpus", InvalidInput, "write nvidia.com/gpu"),
        ("rdma", InvalidInput, "write the full name, as DOMAIN/NAME"),
        ("CPU", InvalidInput, "write the full name, as DOMAIN/NAME"),
        ("pods", InvalidInput, "write the full name, as DOMAIN/NAME"),
        ("nvidia.com/mig-1g.5gb", NotSupportedYet, "ask for whole devices"),
        ("nvidia.com/gpu.shared", NotSupportedYet, "ask for whole devices"),
        ("koordinator.sh/gpu-core", NotSupportedYet, "ask for whole devices"),
    ],
)
def test_a_resource_that_is_none_or_not_built_is_refused_by_its_name(
    place: str, name: str, kind: type[InvalidInput], hint: str
) -> None:
    document = asking_at(place, name, 1)
    resources = "requests" if place.endswith("requests") else "limits"
    if resources == "requests":  # devices need limits that equal them
        containers = document["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
        containers[place.split("/", maxsplit=1)[0]][0]["resources"]["limits"] = {name: 1}
    error = refusal_of(document)
    assert type(error) is kind
    assert error.pointer.startswith(f"{POD}/{place.rpartition('/')[0]}/")
    assert error.pointer.endswith(f"/{name.replace('/', '~1')}")
    assert error.hint.startswith(hint)


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "rdma/hca", "ephemeral-storage", "a.b/c"])
@pytest.mark.parametrize("place", ["resources/requests", "resources/limits"])
def test_a_pod_as_a_whole_asks_for_cpu_memory_and_pages_only(place: str, name: str) -> None:
    error = refusal_of(asking_at(place, name, 1))
    assert error.allowed == ("cpu", "memory", "hugepages-SIZE")
    assert error.hint == "ask for it in a container"


def two_containers(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    other = a_container(name="other", resources={"limits": second})
    main = a_container(resources={"limits": first})
    return a_manifest(pod={"containers": [main, other]})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"nvidia.com/gpu": 1}, {"amd.com/gpu": 1}),
        ({"amd.com/gpu": 1}, {"nvidia.com/gpu": "1"}),
        ({}, {"amd.com/gpu": 1, "nvidia.com/gpu": 1}),
    ],
)
def test_a_pod_asks_for_one_kind_of_gpu_in_all_its_containers(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    error = refusal_of(two_containers(first, second))
    assert error.pointer.startswith(f"{POD}/containers/1/resources/limits/")
    assert error.detail.endswith("a pod asks for one kind of GPU only")
    assert error.hint == "keep one of ['amd.com/gpu', 'nvidia.com/gpu']"


def test_the_kinds_of_gpu_are_compared_with_init_containers_too() -> None:
    init = a_container(name="init", resources={"limits": {"amd.com/gpu": 1}})
    document = a_manifest({"resources": {"limits": {"nvidia.com/gpu": 1}}})
    template = document["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    template["spec"]["initContainers"] = [init]
    assert refusal_of(document).pointer == f"{POD}/initContainers/0/resources/limits/amd.com~1gpu"


def test_no_gpu_of_another_kind_is_no_second_kind() -> None:
    read = master_of(two_containers({"nvidia.com/gpu": 2}, {"amd.com/gpu": 0}))
    assert read.per_pod == {"gpu": 2}


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "rdma/hca", "hugepages-2Mi", "a.b/c"])
def test_what_cannot_be_overcommitted_has_equal_requests_and_limits(name: str) -> None:
    def both(request: Any, limit: Any) -> dict[str, Any]:
        resources = {"requests": {name: request}, "limits": {} if limit is None else {name: limit}}
        return a_manifest({"resources": resources})

    assert master_of(both("2", 2)).count == 1
    assert master_of(both("2000m", "2")).count == 1
    error = refusal_of(both(1, 2))
    assert error.hint == "write the same in requests and limits"
    assert (error.allowed, error.value) == (("1",), 2)
    error = refusal_of(both(1, None))
    assert error.hint == f"add the same {name} to limits"


def test_cpu_and_memory_may_have_a_limit_above_the_request() -> None:
    resources = {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"cpu": 2, "memory": "2Gi"}}
    assert master_of(a_manifest({"resources": resources})).per_pod == {
        "cpu": 1000,
        "memory": 2**30,
    }


@pytest.mark.parametrize("field", ["request", "limit", "Limits", "gpus"])
@pytest.mark.parametrize("level", ["container", "pod"])
def test_an_unknown_side_of_resources_is_refused(field: str, level: str) -> None:
    resources = {"resources": {field: {"cpu": 1}}}
    document = a_manifest(resources) if level == "container" else a_manifest(pod=resources)
    error = refusal_of(document)
    assert error.allowed == ("claims", "limits", "requests")
    assert error.pointer.endswith(f"/resources/{field}")


@pytest.mark.parametrize(
    ("text", "resource", "expected"),
    [
        (str(UNLIMITED), "memory", UNLIMITED),
        ("4Ei", "memory", UNLIMITED),
        ("4E", "nvidia.com/gpu", 4 * 10**18),
        ("1e-3", "cpu", 1),
        ("1E-3", "cpu", 1),
        ("1.5e3", "nvidia.com/gpu", 1500),
        ("0.001", "memory", 1),
        ("1n", "memory", 1),
        ("1m", "ephemeral-storage", 1),
        ("1.0", "nvidia.com/gpu", 1),
        ("0.5k", "nvidia.com/gpu", 500),
    ],
)
def test_amounts_are_exact_up_to_the_largest_that_is_counted(
    text: str, resource: str, expected: int
) -> None:
    assert parse_quantity(text, resource) == expected


@pytest.mark.parametrize("text", [str(UNLIMITED + 1), "5Ei", "1e99", "99E"])
def test_more_than_the_largest_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_quantity(text, "memory")
    assert caught.value.detail == f"{text} of memory is more than can be counted"
    assert caught.value.value == text


@pytest.mark.parametrize("text", ["0.1", "1m", "1e-1", "1.5", "0.0001k"])
def test_a_part_of_a_device_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_quantity(text, "rdma/hca")
    assert caught.value.detail == f"rdma/hca is counted whole, not {text}"
    assert caught.value.hint == "ask for a whole number"


def test_a_unit_that_is_unknown_is_told_with_all_that_are_known() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_quantity("4Q", "memory")
    decimal, binary = "n u m k M G T P E", "Ki Mi Gi Ti Pi Ei"
    assert caught.value.allowed == (*decimal.split(), *binary.split())
