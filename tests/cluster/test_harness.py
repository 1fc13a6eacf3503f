"""The parts of the harness that need no cluster: finding programs, rendering, cleaning up."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.harness import binaries, versions
from tests.cluster.harness.environment import UnresolvedVariable, resolve
from tests.cluster.harness.go_build import render_go_mod
from tests.cluster.harness.guard import start_ticks
from tests.cluster.harness.pod_status import restarts_in_place
from tests.cluster.harness.rest import JsonObject
from tests.cluster.harness.scripts import Ending, PodScript
from tests.cluster.harness.waiting import Waited, wait_until

ROOT = Path(__file__).resolve().parents[2]
LEAVES_A_CHILD = """
import sys, time
from pathlib import Path
from tests.cluster.harness.processes import Programs
programs = Programs(Path(sys.argv[1]))
print(programs.start("sleeper", ["sleep", "600"]).child.pid, flush=True)
time.sleep(600)
"""


def test_a_killed_run_leaves_neither_programs_nor_data(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    command = [sys.executable, "-c", LEAVES_A_CHILD, str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        child = int(run.stdout.readline())
        assert start_ticks(child)
        run.send_signal(signal.SIGKILL)
    wait_until(lambda: not folder.exists(), "the guard to remove the data")
    # The machine's first process may be slow to collect a killed orphan.
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_programs_are_taken_from_a_given_folder_that_has_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, cache = tmp_path / "assets", tmp_path / "cache"
    cached = cache / "training-gateway" / "cluster" / versions.etcd().label
    for folder in (given, cached):
        folder.mkdir(parents=True)
    (cached / "etcd").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(given))
    assert binaries.folder_of(versions.etcd()) == cached
    (given / "etcd").touch()
    assert binaries.folder_of(versions.etcd()) == given


def test_an_older_kubernetes_is_one_version_string_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINING_GATEWAY_TEST_KUBERNETES", "v1.36.3")
    upstream = "go 1.25.0\n\nreplace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n)\n"
    rendered = render_go_mod(versions.kubernetes(), upstream)
    assert "require k8s.io/kubernetes v1.36.3" in rendered
    assert "replace k8s.io/api => k8s.io/api v0.36.3" in rendered


def pod_with(*variables: JsonObject) -> JsonObject:
    container = {"name": "main", "env": list(variables)}
    metadata = {"name": "p", "labels": {"a/b": "1"}}
    return {"metadata": metadata, "spec": {"containers": [container]}}


def variables_of(pod: JsonObject, objects: dict[str, JsonObject]) -> dict[str, str]:
    [container] = pod["spec"]["containers"]
    return resolve(pod, container, lambda plural, name: objects.get(f"{plural}/{name}"))


def test_variables_come_from_fields_secrets_and_earlier_variables() -> None:
    key = {"name": "vault", "key": "token"}
    pod = pod_with(
        {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a/b']"}}},
        {"name": "NONE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['x']"}}},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": key}},
        {"name": "BOTH", "value": "$(LABEL)-$(TOKEN)-$(LATER)"},
    )
    secret = {"data": {"token": "c2VjcmV0"}}
    assert variables_of(pod, {"secrets/vault": secret}) == {
        "LABEL": "1",
        "NONE": "",
        "TOKEN": "secret",
        "BOTH": "1-secret-$(LATER)",
    }
    with pytest.raises(UnresolvedVariable, match="vault"):
        variables_of(pod, {})


@pytest.mark.parametrize(
    ("policy", "ending", "expected"),
    [
        ("Never", Ending(exit_code=1), False),
        ("OnFailure", Ending(exit_code=1), True),
        ("OnFailure", Ending(exit_code=0), False),
        ("Always", Ending(exit_code=0), True),
        ("Always", Ending(exit_code=137, reason="Evicted"), False),
    ],
)
def test_containers_restart_in_place_as_on_a_real_node(
    policy: str, ending: Ending, *, expected: bool
) -> None:
    assert restarts_in_place({"spec": {"restartPolicy": policy}}, ending) is expected


def test_a_script_is_about_the_replicas_it_names() -> None:
    prefix = "training.kubeflow.org"
    labels = {
        f"{prefix}/job-name": "train-7",
        f"{prefix}/replica-type": "worker",
        f"{prefix}/replica-index": "1",
    }
    pod = {"metadata": {"name": "train-7-worker-1", "labels": labels}}
    assert PodScript(job="train-.*", replica_type="worker", index=1).matches(pod)
    assert not PodScript(job="train").matches(pod), "the whole name must match"
    assert not PodScript(replica_type="master").matches(pod)
    assert not PodScript(index=0).matches(pod)


def test_waiting_says_what_it_waited_for() -> None:
    def probe() -> bool:
        raise OSError("refused")

    with pytest.raises(Waited, match=r"waited 0 s for a sign \(last: refused\)"):
        wait_until(probe, "a sign", 0, swallow=(OSError,))


def test_no_start_time_is_known_of_a_process_that_does_not_live() -> None:
    assert start_ticks(os.getpid())
    assert start_ticks(2**31 - 1) == ""
