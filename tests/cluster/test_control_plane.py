"""The test cluster itself: real API server, scheduler and operator with a scripted kubelet."""

import os
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
import yaml

from tests.cluster.harness.cluster import Cluster
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.fake_kubelet import FakeKubelet
from tests.cluster.harness.nodes import NodeShape
from tests.cluster.harness.rest import Refused, Rest
from tests.cluster.harness.scripts import PodScript
from tests.cluster.harness.tokens import account_token
from tests.cluster.harness.versions import kubernetes_version
from tests.cluster.harness.waiting import wait_until
from tests.cluster.pytorch_jobs import (
    GATE,
    PLACE,
    jobs_path,
    open_gate,
    pods_path,
    pytorch_job,
    run_gang,
    start_gated,
    wait_condition,
    wait_gone,
    wait_phase,
)


@pytest.fixture
def rest(cluster: Cluster) -> Rest:
    return cluster.rest


def test_the_api_server_is_the_version_that_was_asked_for(control_plane: ControlPlane) -> None:
    assert control_plane.rest.text("/readyz") == "ok"
    if "KUBEBUILDER_ASSETS" not in os.environ:
        assert control_plane.version() == f"v{kubernetes_version()}"


def test_a_suspended_job_has_no_pods_and_a_released_one_has_gated_pods(
    rest: Rest, namespace: str, nodes: list[str], fake_kubelet: FakeKubelet
) -> None:
    rest.create(jobs_path(namespace), pytorch_job("train", workers=2))
    wait_condition(rest, namespace, "train", "Suspended")
    assert rest.items(pods_path(namespace)) == []
    rest.delete(jobs_path(namespace, "train"))
    pods = start_gated(rest, namespace, pytorch_job("again", workers=2))
    assert [pod["metadata"]["name"] for pod in pods] == [
        "again-master-0",
        "again-worker-0",
        "again-worker-1",
    ]
    assert [pod["spec"]["schedulingGates"] for pod in pods] == [[{"name": GATE}]] * 3
    assert not any("nodeName" in pod["spec"] for pod in pods)


def test_one_patch_a_pod_makes_the_scheduler_bind_each_to_its_chosen_node(
    rest: Rest, namespace: str, nodes: list[str], fake_kubelet: FakeKubelet
) -> None:
    chosen = list(reversed(nodes))
    pods = run_gang(rest, namespace, pytorch_job("train", workers=2), chosen)
    assert [pod["spec"]["nodeName"] for pod in pods] == chosen
    assert [pod["metadata"]["annotations"][PLACE] for pod in pods] == [f"{n}:0-7" for n in chosen]
    job = wait_condition(rest, namespace, "train", "Running")
    wait_until(
        lambda: (
            rest.get(jobs_path(namespace, "train"))["status"]["replicaStatuses"]["Worker"].get(
                "active"
            )
            == 2
        ),
        "both workers to be counted as active",
    )
    assert job["spec"]["runPolicy"]["suspend"] is False


def test_a_container_gets_the_environment_a_kubelet_would_resolve(
    rest: Rest, namespace: str, nodes: list[str], fake_kubelet: FakeKubelet
) -> None:
    pods = run_gang(rest, namespace, pytorch_job("train", workers=2), nodes)
    master = fake_kubelet.environment(namespace, "train-master-0")
    assert master["PLACE"] == f"{nodes[0]}:0-7"
    assert master["GREETING"] == f"train-master-0 on {nodes[0]}, $(NODE) literally"
    worker = fake_kubelet.environment_of(pods[2]["metadata"]["uid"])
    assert (worker["POD"], worker["NODE"]) == ("train-worker-1", nodes[2])
    assert (worker["RANK"], worker["WORLD_SIZE"]) == ("2", "3"), "set by the operator"
    assert worker["MASTER_ADDR"] == "train-master-0"


def test_logs_are_read_and_followed_through_the_api_server(
    rest: Rest, namespace: str, nodes: list[str], fake_kubelet: FakeKubelet
) -> None:
    fake_kubelet.script(PodScript(replica_type="master", lines=("epoch 0", "epoch 1")))
    run_gang(rest, namespace, pytorch_job("train", workers=2), nodes)
    path = pods_path(namespace, "train-master-0") + "/log"
    assert rest.text(path) == "epoch 0\nepoch 1\n"
    assert rest.text(path, tailLines="1") == "epoch 1\n"
    assert rest.text(path, tailLines="1", timestamps="true").endswith("Z epoch 1\n")
    with rest.stream(path, follow="true") as lines:
        assert [next(lines), next(lines)] == ["epoch 0", "epoch 1"]
        fake_kubelet.print_line(namespace, "train-master-0", "epoch 2")
        assert next(lines) == "epoch 2"
        fake_kubelet.finish(namespace, "train-master-0")
        assert list(lines) == []


def test_a_job_succeeds_with_its_master_and_its_workers_are_cleaned_up(
    rest: Rest, namespace: str, nodes: list[str], fake_kubelet: FakeKubelet
) -> None:
    run_gang(rest, namespace, pytorch_job("train", workers=2), nodes)
    fake_kubelet.finish(namespace, "train-master-0")
    job = wait_condition(rest, namespace, "train", "Succeeded")
    assert job["status"]["replicaStatuses"]["Master"]["succeeded"] == 1
    for name in ("train-worker-0", "train-worker-1"):
        wait_gone(rest, pods_path(namespace, name))
    assert rest.get(pods_path(namespace, "train-master-0"))["status"]["phase"] == "Succeeded"


def test_a_failed_worker_that_never_restarts_fails_the_job(
    rest: Rest, namespace: str, nodes: list[str], fake_kubelet: FakeKubelet
) -> None:
    fake_kubelet.script(PodScript(replica_type="worker", index=1, run_seconds=0.5, exit_codes=(3,)))
    pods = start_gated(rest, namespace, pytorch_job("train", workers=2))
    for pod, node in zip(pods, nodes, strict=True):
        open_gate(rest, pod, node)
    wait_condition(rest, namespace, "train", "Failed")
    [status] = wait_phase(rest, pods[2], "Failed")["status"]["containerStatuses"]
    assert status["state"]["terminated"]["exitCode"] == 3


def test_a_container_restarts_in_place_where_the_policy_says_so(
    rest: Rest, namespace: str, nodes: list[str], fake_kubelet: FakeKubelet
) -> None:
    fake_kubelet.script(PodScript(run_seconds=0.0, exit_codes=(1, 0)))
    rest.create(pods_path(namespace), bare_pod("lonely"))
    pod = {"metadata": {"name": "lonely", "namespace": namespace}}
    [status] = wait_phase(rest, pod, "Succeeded")["status"]["containerStatuses"]
    assert status["restartCount"] == 1


def test_a_pod_scripted_as_stuck_stays_pending_with_its_reason(
    rest: Rest, namespace: str, nodes: list[str], fake_kubelet: FakeKubelet
) -> None:
    fake_kubelet.script(PodScript(job="lonely", stuck="ImagePullBackOff"))
    rest.create(pods_path(namespace), bare_pod("lonely"))

    def waiting_reason() -> str:
        status = rest.get(pods_path(namespace, "lonely"))["status"]
        [container] = status.get("containerStatuses") or [{"state": {}}]
        return str(container["state"].get("waiting", {}).get("reason", ""))

    assert wait_until(waiting_reason, "a reason to wait") == "ImagePullBackOff"
    assert rest.get(pods_path(namespace, "lonely"))["status"]["phase"] == "Pending"


def test_a_deleted_pod_goes_unless_its_script_keeps_it_terminating(
    rest: Rest, namespace: str, nodes: list[str], fake_kubelet: FakeKubelet
) -> None:
    fake_kubelet.script(PodScript(job="stubborn", terminates=False))
    for name in ("obedient", "stubborn"):
        rest.create(pods_path(namespace), bare_pod(name))
        wait_phase(rest, {"metadata": {"name": name, "namespace": namespace}}, "Running")
        rest.delete(pods_path(namespace, name), {"gracePeriodSeconds": 1})
    wait_gone(rest, pods_path(namespace, "obedient"))
    assert "deletionTimestamp" in rest.get(pods_path(namespace, "stubborn"))["metadata"]
    rest.delete(pods_path(namespace, "stubborn"), {"gracePeriodSeconds": 0})
    wait_gone(rest, pods_path(namespace, "stubborn"))


def test_the_real_webhook_refuses_a_container_that_is_not_named_pytorch(
    rest: Rest, namespace: str
) -> None:
    with pytest.raises(Refused, match="pytorch") as refused:
        rest.create(jobs_path(namespace), pytorch_job("train", workers=1, container="trainer"))
    assert "validator.pytorchjob.training-operator.kubeflow.org" in refused.value.message


def test_a_lost_node_turns_unusable_and_comes_back(
    cluster: Cluster, make_nodes: Callable[..., list[str]], fake_kubelet: FakeKubelet
) -> None:
    [node] = make_nodes(1, NodeShape(gpus=2))

    def is_ready() -> str:
        conditions = cluster.rest.get(f"/api/v1/nodes/{node}")["status"]["conditions"]
        return next(str(c["status"]) for c in conditions if c["type"] == "Ready")

    fake_kubelet.lose_node(node)
    wait_until(lambda: is_ready() == "Unknown", "the node to be Unknown", 60)
    fake_kubelet.restore_node(node)
    wait_until(lambda: is_ready() == "True", "the node to be Ready again")


def test_a_service_account_may_do_no_more_than_its_role(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    config = control_plane.kubeconfig_for_account(namespace, "default", tmp_path / "config")
    token = yaml.safe_load(config.read_text())["users"][0]["user"]["token"]
    with Rest(control_plane.url, control_plane.ca_path, token) as account:
        with pytest.raises(Refused) as refused:
            account.items(pods_path(namespace))
        assert (refused.value.status, refused.value.reason) == (403, "Forbidden")
    foreign = account_token(control_plane.rest, namespace, "default", ("elsewhere",))
    with Rest(control_plane.url, control_plane.ca_path, foreign) as stranger:
        with pytest.raises(Refused) as refused:
            stranger.items(pods_path(namespace))
        assert refused.value.status == httpx2.codes.UNAUTHORIZED


def test_the_api_server_comes_back_with_its_address_and_its_objects(
    cluster: Cluster, namespace: str, nodes: list[str], fake_kubelet: FakeKubelet
) -> None:
    rest = cluster.rest
    rest.create(pods_path(namespace), bare_pod("lonely"))
    pod = {"metadata": {"name": "lonely", "namespace": namespace}}
    wait_phase(rest, pod, "Running")
    cluster.plane.stop_api_server()
    with pytest.raises(httpx2.TransportError):
        rest.get(pods_path(namespace))
    cluster.plane.start_api_server()
    fake_kubelet.finish(namespace, "lonely")
    wait_phase(rest, pod, "Succeeded")
    assert fake_kubelet.troubles == []


def bare_pod(name: str) -> dict[str, object]:
    container = {"name": "main", "image": "example.invalid/any:1"}
    spec = {"containers": [container], "restartPolicy": "OnFailure"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
