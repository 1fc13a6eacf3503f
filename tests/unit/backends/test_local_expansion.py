"""`$(NAME)` in commands and variables, and the rendezvous of every form of gang."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.local.launching import identity_of, record_of
from gateway.backends.local.program import Program, expand, read_program
from gateway.backends.local.rendezvous import read_rendezvous, rendezvous_environment
from gateway.errors import ClusterRejected
from tests.contract.backends.launches import a_launch, a_manifest

names = st.text("ABC_1", min_size=1, max_size=4)
plain = st.text(st.characters(exclude_characters="$", exclude_categories=["Cs"]), max_size=12)


def a_program(*command: str, **variables: str) -> Program:
    return Program(
        command=command or ("true",),
        environment=tuple(variables.items()),
        folder="/",
        restart_policy="Never",
    )


@pytest.mark.parametrize(
    ("written", "expanded"),
    [
        ("$(A)", "1"),
        ("$(A)$(A)", "11"),
        ("x$(A)y", "x1y"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$$$$(A)", "$$(A)"),
        ("$(MISSING)", "$(MISSING)"),
        ("$(A", "$(A"),
        ("$A", "$A"),
        ("${A}", "${A}"),
        ("$()", "$()"),
        ("$(a)", "$(a)"),
        ("$( A )", "$( A )"),
        ("$(A$(A))", "$(A1)"),
        ("$", "$"),
        ("$$", "$"),
        ("", ""),
    ],
)
def test_a_reference_is_replaced_as_a_kubelet_does(written: str, expanded: str) -> None:
    command, environment = expand(a_program("run", written, A="1", B=written), {}, "python")

    assert command == ["run", expanded]
    assert environment["B"] == expanded


@given(plain, st.dictionaries(names, plain, max_size=3))
def test_a_text_without_a_dollar_stays_as_it_is(text: str, variables: dict[str, str]) -> None:
    command, environment = expand(a_program("run", text, **variables), {}, "python")

    assert command[1] == text
    assert environment == variables


@given(plain)
def test_doubling_every_dollar_is_a_way_to_say_anything(text: str) -> None:
    said = f"$({text}) costs $5"

    assert expand(a_program("run", said.replace("$", "$$")), {}, "python")[0][1] == said


def test_a_variable_sees_only_those_before_it_and_never_the_operators() -> None:
    program = a_program("$(LATE)", "$(RANK)", EARLY="$(LATE)", LATE="$(RANK)", RANK="mine")

    command, environment = expand(program, {"RANK": "3"}, "python")

    assert environment == {"EARLY": "$(LATE)", "LATE": "$(RANK)", "RANK": "3"}
    assert command == ["$(RANK)", "3"]


def test_a_value_is_not_expanded_twice() -> None:
    assert expand(a_program("$(B)", A="1", B="$$(A)"), {}, "python")[0] == ["$(A)"]


@pytest.mark.parametrize(
    ("first", "run"),
    [
        ("python", "/own"),
        ("python3", "/own"),
        ("python3.11", "python3.11"),
        ("/usr/bin/python", "/usr/bin/python"),
        ("$(PY)", "/own"),
        ("", ""),
    ],
)
def test_only_a_bare_python_is_the_gateways_own(first: str, run: str) -> None:
    assert expand(a_program(first, "python", PY="python"), {}, "/own")[0] == [run, "python"]


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ({"name": "A", "value": "1"}, "1"),
        ({"name": "A"}, ""),
        ({"name": "A", "value": None}, ""),
        ({"name": "A", "value": ""}, ""),
        ({"name": "A", "value": "1", "valueFrom": None}, "1"),
        ({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, "digits-ab12-1"),
        ({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}, "default"),
    ],
)
def test_what_a_variable_says_itself_is_read(entry: dict[str, Any], value: str) -> None:
    assert read(env=[entry]).environment == (("A", value),)


@pytest.mark.parametrize(
    "source",
    [
        {"secretKeyRef": {"name": "s", "key": "k"}},
        {"configMapKeyRef": {"name": "c", "key": "k"}},
        {"resourceFieldRef": {"resource": "limits.cpu"}},
        {"fieldRef": {"fieldPath": "status.podIP"}},
        {"fieldRef": {"fieldPath": "metadata.labels['a']"}},
        {"fieldRef": None},
        {"fieldRef": {}},
    ],
)
def test_what_only_a_cluster_knows_is_refused_by_its_place(source: dict[str, Any]) -> None:
    with pytest.raises(ClusterRejected) as caught:
        read(env=[{"name": "OK", "value": "1"}, {"name": "TOKEN", "valueFrom": source}])

    assert caught.value.pointer == (
        "/spec/pytorchReplicaSpecs/Master/template/spec/containers/0/env/1/valueFrom"
    )
    assert caught.value.detail == (
        "the local back end cannot resolve TOKEN: there is no cluster to read it from"
    )
    assert caught.value.hint == "give a plain value, or use a cluster"


@pytest.mark.parametrize("command", [None, [], ()])
def test_without_a_command_nothing_can_run(command: object) -> None:
    with pytest.raises(ClusterRejected) as caught:
        read(command=command, args=["--epochs", "3"])

    assert caught.value.detail == (
        "the container 'pytorch' of Master has no command, and the local back end runs no images"
    )


@pytest.mark.parametrize("containers", [None, [], [{}], [{"name": "trainer"}], ["pytorch"], [None]])
def test_without_a_container_named_pytorch_nothing_can_run(containers: object) -> None:
    manifest = a_manifest(0, ["true"])
    manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"] = {
        "containers": containers
    }
    launch = a_launch(manifest)

    with pytest.raises(ClusterRejected) as caught:
        read_program(launch, launch.pods[0], Path("/"))
    assert caught.value.pointer == "/spec/pytorchReplicaSpecs/Master/template/spec/containers"
    assert caught.value.hint == "name the container that trains 'pytorch'"


def test_a_container_is_found_behind_its_helpers() -> None:
    manifest = a_manifest(0, ["true"])
    spec = manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    spec["containers"].insert(0, {"name": "helper"})
    spec["containers"][1]["workingDir"] = "/does/not/exist"
    launch = a_launch(manifest)

    with pytest.raises(ClusterRejected) as caught:
        read_program(launch, launch.pods[0], Path("/"))
    assert caught.value.pointer.endswith("/containers/1/workingDir")


def read(**fields: Any) -> Program:
    manifest = a_manifest(0, ["true"])
    sets = manifest["spec"]["pytorchReplicaSpecs"]
    sets["Master"]["template"]["spec"]["containers"][0].update(fields)
    launch = a_launch(manifest)
    return read_program(launch, launch.pods[0], Path("/"))


def gang(workers: int, *, has_master: bool = True, **spec: Any) -> dict[str, Any]:
    manifest = a_manifest(workers)
    if not has_master:
        del manifest["spec"]["pytorchReplicaSpecs"]["Master"]
    manifest["spec"] |= spec
    return manifest


@pytest.mark.parametrize(
    ("per_node", "old_per_node", "told", "world"),
    [
        (None, None, "auto", "3"),
        ("auto", None, "auto", "3"),
        ("cpu", None, "cpu", "3"),
        ("gpu", None, "gpu", "3"),
        ("1", None, "1", "3"),
        ("8", None, "8", "24"),
        (None, 4, "4", "12"),
        ("2", 4, "2", "6"),
        ("-2", None, "-2", "3"),
        ("1.5", None, "1.5", "3"),
    ],
)
def test_the_world_is_nodes_times_programs_where_that_is_a_number(
    per_node: str | None, old_per_node: int | None, told: str, world: str
) -> None:
    spec: dict[str, Any] = {"nprocPerNode": per_node}
    if old_per_node is not None:
        spec["elasticPolicy"] = {"nProcPerNode": old_per_node}

    found = rendezvous_environment(read_rendezvous(gang(2, **spec)), 0, 1)

    assert (found["PET_NPROC_PER_NODE"], found["WORLD_SIZE"]) == (told, world)


@pytest.mark.parametrize(
    ("policy", "nodes"),
    [
        (None, "2"),
        ({}, "2:2"),
        ({"minReplicas": 1}, "1:2"),
        ({"maxReplicas": 4}, "2:4"),
        ({"minReplicas": 1, "maxReplicas": 8}, "1:8"),
    ],
)
def test_an_elastic_gang_tells_its_bounds(policy: dict[str, int] | None, nodes: str) -> None:
    manifest = gang(2, has_master=False, elasticPolicy=policy)

    assert rendezvous_environment(read_rendezvous(manifest), 0, 1)["PET_NNODES"] == nodes


@given(st.integers(0, 6), st.integers(1, 65_535))
def test_all_ranks_are_told_the_same_but_for_their_rank(workers: int, port: int) -> None:
    rendezvous = read_rendezvous(gang(workers))
    told = [rendezvous_environment(rendezvous, rank, port) for rank in range(workers + 1)]

    assert [found.pop("RANK") for found in told] == [str(rank) for rank in range(workers + 1)]
    assert [found.pop("PET_NODE_RANK") for found in told] == [str(r) for r in range(workers + 1)]
    assert all(found == told[0] for found in told)
    assert told[0]["MASTER_PORT"] == told[0]["PET_MASTER_PORT"] == str(port)


def test_replicas_are_recorded_by_rank_whatever_their_order_in_the_launch() -> None:
    launch = a_launch(a_manifest(2, ["true"]))
    mixed = type(launch)(
        **{name: getattr(launch, name) for name in launch.__slots__ if name != "pods"},
        pods=launch.pods[::-1],
    )
    record = record_of(mixed, uid="u", heartbeat_file=Path("h"), orphan_seconds=60, most_restarts=3)

    assert [replica.rank for replica in record.replicas] == [0, 1, 2]
    assert [replica.pod_set for replica in record.replicas] == ["Master", "Worker", "Worker"]
    assert record.identity == identity_of(launch) == f"job-digits-ab12-1/1/{'ab' * 32}"
