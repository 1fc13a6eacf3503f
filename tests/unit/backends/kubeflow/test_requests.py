"""What a pod takes of its node, counted as the scheduler counts it."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.kubeflow.json_paths import Json
from gateway.backends.kubeflow.requests import (
    amounts_of,
    effective_requests,
    quantity,
    total_of,
    without_devices,
)

cpus = st.integers(0, 64)
containers = st.lists(cpus, max_size=4)
starters = st.lists(st.tuples(st.booleans(), cpus), max_size=5)


def container(cpu: int | str, **fields: Any) -> Json:
    return {"resources": {"requests": {"cpu": str(cpu)}}, **fields}


def sidecar(cpu: int) -> Json:
    return container(cpu, restartPolicy="Always")


def a_pod(*main: Json, init: list[Json] | None = None, **spec: Any) -> Json:
    return {"spec": {"containers": list(main), "initContainers": init or [], **spec}}


def cpu_of(pod: Json) -> Fraction:
    return Fraction(effective_requests(pod).get("cpu", 0), 1000)


def reference(main: list[int], init: list[tuple[bool, int]]) -> int:
    """Count moment by moment: what runs while each init container runs, and afterwards."""
    moments, beside = [0], 0
    for stays, cpu in init:
        moments.append(beside + cpu)
        beside += cpu if stays else 0
    return max([*moments, beside + sum(main)])


@given(containers, starters)
def test_a_pod_takes_the_most_of_all_moments_of_its_life(
    main: list[int], init: list[tuple[bool, int]]
) -> None:
    starting = [sidecar(cpu) if stays else container(cpu) for stays, cpu in init]

    assert cpu_of(a_pod(*map(container, main), init=starting)) == reference(main, init)


@given(containers, starters, st.randoms())
def test_the_order_of_main_containers_does_not_matter(
    main: list[int], init: list[tuple[bool, int]], random: Any
) -> None:
    starting = [sidecar(cpu) if stays else container(cpu) for stays, cpu in init]
    mixed = list(main)
    random.shuffle(mixed)

    assert effective_requests(a_pod(*map(container, main), init=starting)) == effective_requests(
        a_pod(*map(container, mixed), init=starting)
    )


@given(containers, starters, cpus)
def test_one_container_more_never_makes_a_pod_smaller(
    main: list[int], init: list[tuple[bool, int]], more: int
) -> None:
    starting = [sidecar(cpu) if stays else container(cpu) for stays, cpu in init]
    before = cpu_of(a_pod(*map(container, main), init=starting))

    assert cpu_of(a_pod(*map(container, [*main, more]), init=starting)) >= before
    assert cpu_of(a_pod(*map(container, main), init=[*starting, container(more)])) >= before
    assert cpu_of(a_pod(*map(container, main), init=[*starting, sidecar(more)])) >= before


@pytest.mark.parametrize(
    ("init", "main", "expected"),
    [
        ([], [2], 2),
        ([container(5)], [2], 5),
        ([container(5)], [3, 4], 7),
        ([sidecar(1), container(5)], [2], 6),
        ([container(5), sidecar(1)], [2], 5),
        ([sidecar(1), sidecar(2)], [4], 7),
        ([sidecar(3), container(1)], [0], 4),
        ([container(1, restartPolicy="OnFailure")], [2], 2),
    ],
)
def test_a_sidecar_counts_beside_what_starts_after_it(
    init: list[Json], main: list[int], expected: int
) -> None:
    assert cpu_of(a_pod(*map(container, main), init=init)) == expected


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"requests": {"cpu": "2"}, "limits": {"cpu": "4"}}, 2000),
        ({"limits": {"cpu": "4"}}, 4000),
        ({"requests": {"memory": "1Gi"}, "limits": {"cpu": "4"}}, 4000),
        ({"requests": {"cpu": "0"}, "limits": {"cpu": "4"}}, 0),
        ({}, 0),
        (None, 0),
        ("text", 0),
        ({"requests": ["cpu"]}, 0),
    ],
)
def test_a_limit_stands_in_for_a_request_that_is_missing(resources: object, expected: int) -> None:
    pod = a_pod({"resources": resources})

    assert effective_requests(pod).get("cpu", 0) == expected


@pytest.mark.parametrize(
    ("whole", "expected"),
    [
        ({"requests": {"cpu": "9"}}, 9),
        ({"requests": {"cpu": "1"}}, 1),
        ({"limits": {"cpu": "9"}}, 3),
        ({"requests": {"memory": "1Gi"}, "limits": {"cpu": "9"}}, 3),
    ],
)
def test_requests_of_the_whole_pod_replace_the_sum(whole: Json, expected: int) -> None:
    assert cpu_of(a_pod(container(1), container(2), resources=whole)) == expected


def test_a_limit_of_the_whole_pod_fills_in_where_no_container_says_anything() -> None:
    pod = a_pod({}, {}, resources={"limits": {"cpu": "9"}})

    assert cpu_of(pod) == 9


def test_overhead_comes_on_top_of_whatever_the_pod_takes() -> None:
    overhead = {"cpu": "250m", "memory": "120Mi"}

    by_sum = effective_requests(a_pod(container(1), overhead=overhead))
    by_whole = effective_requests(
        a_pod(container(1), overhead=overhead, resources={"requests": {"cpu": "4"}})
    )

    assert by_sum == {"cpu": 1250, "memory": 120 * 2**20}
    assert by_whole["cpu"] == 4250


def test_every_resource_is_counted_by_itself() -> None:
    first = {"resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "2"}}}
    second = {"resources": {"requests": {"memory": "1Gi", "nvidia.com/gpu": "1"}}}
    big = {"resources": {"requests": {"memory": "3Gi"}}}

    assert effective_requests(a_pod(first, second, init=[big])) == {
        "cpu": 1000,
        "memory": 3 * 2**30,
        "nvidia.com/gpu": 3,
    }


@pytest.mark.parametrize(
    "value", [None, [], {}, "", "x", "1Qi", "-1", "nan", "1e999", True, "1 Gi"]
)
def test_what_is_no_quantity_counts_as_nothing(value: object) -> None:
    assert quantity(value, "memory") == 0
    assert amounts_of({"memory": value, "cpu": "1"}) == {"memory": 0, "cpu": 1000}


@pytest.mark.parametrize("pod", [{}, {"spec": None}, {"spec": []}, {"spec": {"containers": {}}}])
def test_a_pod_without_a_readable_spec_takes_nothing(pod: Json) -> None:
    assert effective_requests(pod) == {}


def test_devices_are_told_apart_from_amounts() -> None:
    amounts = {"cpu": 1, "nvidia.com/gpu": 2, "rdma/hca": 3, "example.org/dongle": 4}

    assert without_devices(amounts) == {"cpu": 1, "example.org/dongle": 4}
    assert total_of(amounts, lambda name: name.startswith(("nvidia", "rdma"))) == 5
    assert total_of({}, lambda _: True) == 0
