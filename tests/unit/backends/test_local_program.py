"""What a replica runs on this machine, read from its manifest."""

from pathlib import Path
from typing import Any

import pytest

from gateway.backends.local.program import Program, expand, read_program
from gateway.errors import ClusterRejected
from tests.contract.backends.launches import a_launch, a_manifest

HERE = Path(__file__).parent
POINTER = "/spec/pytorchReplicaSpecs/Master/template/spec/containers/0"


def container(manifest: dict[str, Any]) -> dict[str, Any]:
    spec = manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    found: dict[str, Any] = spec["containers"][0]
    return found


def read(**fields: object) -> Program:
    manifest = a_manifest(0, ["python", "train.py"])
    container(manifest).update(fields)
    launch = a_launch(manifest)
    return read_program(launch, launch.pods[0], HERE)


def refused(**fields: object) -> ClusterRejected:
    with pytest.raises(ClusterRejected) as caught:
        read(**fields)
    assert caught.value.hint
    return caught.value


def test_arguments_follow_the_command() -> None:
    assert read(args=["--epochs", 3]).command == ("python", "train.py", "--epochs", "3")


def test_a_container_without_a_command_is_refused_since_images_are_not_run() -> None:
    error = refused(command=[])

    assert error.pointer == f"{POINTER}/command"
    assert "images" in error.detail


def test_a_pod_without_a_container_named_pytorch_is_refused() -> None:
    assert "pytorch" in refused(name="trainer").detail


def test_a_manifest_without_a_template_is_refused_by_its_place() -> None:
    manifest = a_manifest(0)
    del manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    launch = a_launch(manifest)

    with pytest.raises(ClusterRejected) as caught:
        read_program(launch, launch.pods[0], HERE)
    assert caught.value.pointer.startswith("/spec/pytorchReplicaSpecs/Master")


def test_what_only_a_cluster_knows_is_refused_rather_than_left_empty() -> None:
    secret = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}

    assert refused(env=[secret]).pointer == f"{POINTER}/env/0/valueFrom"
    assert refused(envFrom=[{"configMapRef": {"name": "c"}}]).pointer == f"{POINTER}/envFrom"


def test_the_objects_own_name_and_namespace_are_known() -> None:
    def field(path: str) -> dict[str, object]:
        return {"name": path[-4:], "valueFrom": {"fieldRef": {"fieldPath": path}}}

    program = read(env=[field("metadata.name"), field("metadata.namespace")])

    assert [value for _, value in program.environment] == ["digits-ab12-1", "default"]


def test_a_replica_runs_where_the_gateway_does_unless_it_names_a_folder(tmp_path: Path) -> None:
    assert read().folder == str(HERE)
    assert read(workingDir=str(tmp_path)).folder == str(tmp_path)
    assert refused(workingDir="/does/not/exist").pointer == f"{POINTER}/workingDir"


def test_references_to_earlier_variables_are_replaced_as_a_kubelet_does() -> None:
    program = read(
        env=[{"name": "BASE", "value": "/data"}, {"name": "SET", "value": "$(BASE)/digits"}],
        args=["$(SET)", "$(RANK)", "$(UNKNOWN)", "$$(BASE)", "$HOME"],
    )

    command, environment = expand(program, {"RANK": "2"}, "/usr/bin/python3")

    assert environment["SET"] == "/data/digits"
    assert command[2:] == ["/data/digits", "2", "$(UNKNOWN)", "$(BASE)", "$HOME"]


def test_the_operators_variables_win_over_the_containers() -> None:
    program = read(env=[{"name": "RANK", "value": "7"}])

    assert expand(program, {"RANK": "0"}, "python")[1]["RANK"] == "0"


@pytest.mark.parametrize("name", ["python", "python3"])
def test_python_is_the_gateways_own(name: str) -> None:
    assert expand(read(command=[name]), {}, "/own/python")[0] == ["/own/python"]


def test_another_program_stays_as_it_is() -> None:
    assert expand(read(command=["/bin/sh", "-c", "true"]), {}, "/own/python")[0][0] == "/bin/sh"


def test_a_policy_that_nobody_wrote_never_restarts() -> None:
    manifest = a_manifest(0, ["true"])
    del manifest["spec"]["pytorchReplicaSpecs"]["Master"]["restartPolicy"]
    launch = a_launch(manifest)

    assert read_program(launch, launch.pods[0], HERE).restart_policy == "Never"
