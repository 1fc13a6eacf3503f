"""The rendezvous variables are those that the training-operator would set."""

from typing import Any

from gateway.backends.local.rendezvous import read_rendezvous, rendezvous_environment
from tests.contract.backends.launches import a_manifest


def variables(manifest: dict[str, Any], rank: int = 0) -> dict[str, str]:
    return rendezvous_environment(read_rendezvous(manifest), rank, 20_123)


def workers_only(**spec: object) -> dict[str, Any]:
    manifest = a_manifest(3)
    del manifest["spec"]["pytorchReplicaSpecs"]["Master"]
    manifest["spec"].update(spec)
    return manifest


def test_a_worker_beside_a_master_gets_the_masters_place_and_its_rank() -> None:
    assert variables(a_manifest(3), rank=2) == {
        "PYTHONUNBUFFERED": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "20123",
        "PET_MASTER_ADDR": "127.0.0.1",
        "PET_MASTER_PORT": "20123",
        "WORLD_SIZE": "4",
        "RANK": "2",
        "PET_NODE_RANK": "2",
        "PET_NNODES": "4",
        "PET_NPROC_PER_NODE": "auto",
    }


def test_a_number_of_programs_per_node_multiplies_the_world() -> None:
    manifest = a_manifest(1)
    manifest["spec"]["nprocPerNode"] = "4"

    found = variables(manifest)

    assert (found["WORLD_SIZE"], found["PET_NPROC_PER_NODE"]) == ("8", "4")
    assert (found["RANK"], found["PET_NNODES"]) == ("0", "2")


def test_without_a_master_and_without_elasticity_there_is_no_rendezvous() -> None:
    assert variables(workers_only()) == {
        "PYTHONUNBUFFERED": "1",
        "PET_NNODES": "3",
        "PET_NPROC_PER_NODE": "auto",
    }


def test_an_elastic_gang_meets_at_an_endpoint() -> None:
    policy = {
        "minReplicas": 1,
        "maxReplicas": 3,
        "rdzvBackend": "c10d",
        "maxRestarts": 5,
        "rdzvId": "run",
        "rdzvConf": [{"key": "timeout", "value": "30"}, {"key": "is_host", "value": "1"}],
        "standalone": True,
    }

    found = variables(workers_only(elasticPolicy=policy))

    assert found["PET_NNODES"] == "1:3"
    assert found["PET_RDZV_ENDPOINT"] == "127.0.0.1:20123"
    assert found["PET_RDZV_BACKEND"] == "c10d"
    assert found["PET_MAX_RESTARTS"] == "5"
    assert found["PET_RDZV_ID"] == "run"
    assert found["PET_RDZV_CONF"] == "timeout=30,is_host=1"
    assert found["PET_STANDALONE"] == ""


def test_an_elastic_policy_that_says_little_takes_the_defaults() -> None:
    found = variables(workers_only(elasticPolicy={"nProcPerNode": 2}))

    assert found["PET_NNODES"] == "3:3"
    assert found["PET_NPROC_PER_NODE"] == "2"
    assert "PET_STANDALONE" not in found
