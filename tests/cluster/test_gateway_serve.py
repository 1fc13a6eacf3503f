"""A user with a token and `gateway serve` in front of the cluster: command line, SDK, HTTP."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from gateway.cli.app import run
from gateway.sdk import Client
from tests.cluster.gateway_world import PREFIX, Site, a_job, prepare_site
from tests.cluster.harness.cluster import Cluster
from tests.cluster.harness.fake_kubelet import FakeKubelet
from tests.cluster.harness.rest import JsonObject
from tests.cluster.harness.scripts import PodScript
from tests.cluster.kubeflow_world import MACHINE
from tests.cluster.pytorch_jobs import pods_path
from tests.cluster.serving import Installed, Server, set_up

LINES = ("epoch 0 loss 2.30", "epoch 1 loss 0.41")
NODE = "serve-node"


@pytest.fixture(scope="module")
def site(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Give one site to all tests of this file, as starting a server takes seconds."""
    namespace = cluster.add_namespace()
    cluster.add_nodes(NODE, shape=MACHINE)
    yield prepare_site(cluster, namespace, [NODE], tmp_path_factory.mktemp("site"))
    cluster.remove_namespace(namespace)
    cluster.remove_nodes(NODE)


@pytest.fixture(scope="module")
def server(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Give a running server with a user's token."""
    started = Server(set_up(site, tmp_path_factory.mktemp("serve")))
    try:
        started.start()
        yield started
    finally:
        started.stop()


@pytest.fixture
def address(server: Server) -> Installed:
    """Give what a user needs to know of the running server."""
    return server.installed


@pytest.fixture
def gateway(
    address: Installed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Give a function that runs one command as the user and gives what it printed."""
    monkeypatch.setenv("TRAINING_GATEWAY_URL", address.url)
    monkeypatch.setenv("TRAINING_GATEWAY_TOKEN_FILE", str(address.token_file))

    def command(*arguments: str) -> str:
        capsys.readouterr()
        code = run(list(arguments))
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return captured.out

    return command


def test_a_manifest_goes_in_by_the_command_line_and_its_logs_come_out(
    site: Site,
    address: Installed,
    gateway: Callable[..., str],
    fake_kubelet: FakeKubelet,
    tmp_path: Path,
) -> None:
    fake_kubelet.script(PodScript(replica_type="master", lines=LINES))
    manifest = tmp_path / "train.json"
    manifest.write_text(json.dumps(a_job(site.namespace, "by-command")))

    [submitted] = json.loads(gateway("submit", str(manifest), "-o", "json"))
    job = submitted["id"]
    gateway("wait", job, "--for", "running", "--timeout", "60")
    assert gateway("logs", job).splitlines() == list(LINES)
    [master, worker] = pods_of(site, "by-command")
    assert told_by_get(address, job) == {told_by_pod(master), told_by_pod(worker)}
    assert told_by_kubelet(site, master) == told_by_pod(master)

    fake_kubelet.finish(site.namespace, master["metadata"]["name"])
    gateway("wait", job, "--timeout", "60")
    shown = json.loads(gateway("show", job, "-o", "json"))
    assert (shown["state"], shown["attempt"], shown["exit_code"]) == ("succeeded", 1, 0)
    assert gateway("logs", job).splitlines() == list(LINES), "also after the end"


def test_the_sdk_follows_a_gang_from_submit_to_result(
    site: Site, address: Installed, fake_kubelet: FakeKubelet
) -> None:
    fake_kubelet.script(PodScript(replica_type="master", run_seconds=2.0, lines=LINES))
    manifest = a_job(site.namespace, "by-sdk", workers=2)
    with Client(address.url, token_file=address.token_file) as client:
        handle = client.submit(manifest, idempotency_key="once")
        assert client.submit(manifest, idempotency_key="once").id == handle.id
        handle.wait(("running",), timeout=60, polling_interval=0.1)
        assert list(handle.logs(follow=True)) == list(LINES)
        result = handle.result(timeout=60)
        assert (result.state, result.exit_code, result.attempts) == ("succeeded", 0, 1)
        assert {device.is_free for device in client.devices.list()} == {True}
        kinds = [event.kind for event in handle.events()]
        assert kinds == ["submitted", "reserved", "launching", "running", "stopping", "succeeded"]


def test_a_killed_server_takes_its_running_gang_up_again(
    site: Site, server: Server, address: Installed, fake_kubelet: FakeKubelet
) -> None:
    with Client(address.url, token_file=address.token_file) as client:
        handle = client.submit(a_job(site.namespace, "survivor"))
        handle.wait(("running",), timeout=60, polling_interval=0.1)
        [master, worker] = pods_of(site, "survivor")

        server.kill()
        server.start()

        assert handle.refresh().state == "running"
        uids = [pod["metadata"]["uid"] for pod in pods_of(site, "survivor")]
        assert uids == [master["metadata"]["uid"], worker["metadata"]["uid"]]
        fake_kubelet.finish(site.namespace, master["metadata"]["name"])
        result = handle.result(timeout=60)
        assert (result.state, result.attempts) == ("succeeded", 1)


Told = tuple[str, str, str]
"""Node, GPU ids and NIC ids of one pod."""


def told_by_get(address: Installed, job: str) -> set[Told]:
    """Give what GET assignments answers, read without the SDK."""
    token = address.token_file.read_text().strip()
    answer = httpx2.get(
        f"{address.url}/api/v1/jobs/{job}/assignments",
        headers={"Authorization": f"Bearer {token}"},
        trust_env=False,
    )
    return {
        (each["node"], names(each["devices"], "gpu"), names(each["devices"], "rdma"))
        for each in answer.raise_for_status().json()["items"]
    }


def names(devices: list[dict[str, str]], kind: str) -> str:
    """Give the devices of a kind as pods are told about them."""
    return ",".join(each["uuid"] or each["name"] for each in devices if each["kind"] == kind)


def told_by_pod(pod: JsonObject) -> Told:
    """Give where the pod was bound and what its annotations say."""
    annotations = pod["metadata"]["annotations"]
    return pod["spec"]["nodeName"], annotations[f"{PREFIX}gpus"], annotations[f"{PREFIX}nics"]


def told_by_kubelet(site: Site, pod: JsonObject) -> Told:
    """Give what the pod's container finds in its environment."""
    found = site.cluster.kubelet.environment_of(pod["metadata"]["uid"])
    node, gpus, nics = (found[f"TRAINING_GATEWAY_{name}"] for name in ("NODE", "GPUS", "NICS"))
    return node, gpus, nics


def pods_of(site: Site, job_name: str) -> list[JsonObject]:
    """Give the pods of the job of this name, the Master first."""
    found = site.cluster.rest.items(pods_path(site.namespace))
    ours = [pod for pod in found if pod["metadata"]["name"].startswith(f"{job_name}-")]
    return sorted(ours, key=lambda pod: str(pod["metadata"]["name"]))
