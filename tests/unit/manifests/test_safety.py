"""What could harm others is refused in every container of every replica, unless it is allowed."""

from typing import Any

import pytest

from gateway.errors import InvalidInput, UnsafeTemplate
from gateway.manifests import ReadOptions, read_job
from tests.unit.manifests.building import MASTER, POD, a_container, a_manifest, refusal_of

ALLOWING = ReadOptions(allow_unsafe_templates=True)

UNSAFE_PODS: list[tuple[str, dict[str, Any]]] = [
    ("hostNetwork", {"hostNetwork": True}),
    ("hostPID", {"hostPID": True}),
    ("hostIPC", {"hostIPC": True}),
    ("serviceAccountName", {"serviceAccountName": "editor"}),
    ("serviceAccount", {"serviceAccount": "editor"}),
    ("ephemeralContainers", {"ephemeralContainers": [a_container(name="debug")]}),
    ("volumes/1/hostPath", {"volumes": [{"name": "a"}, {"name": "b", "hostPath": {"path": "/"}}]}),
    ("volumes/0/hostPath", {"volumes": [{"name": "a", "hostPath": {}}]}),
    (
        "securityContext/sysctls/0/name",
        {"securityContext": {"sysctls": [{"name": "kernel.msgmax"}]}},
    ),
    (
        "securityContext/seccompProfile/type",
        {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
    ),
    (
        "securityContext/windowsOptions/hostProcess",
        {"securityContext": {"windowsOptions": {"hostProcess": True}}},
    ),
]
UNSAFE_CONTAINERS: list[tuple[str, dict[str, Any]]] = [
    ("securityContext/privileged", {"securityContext": {"privileged": True}}),
    ("securityContext/procMount", {"securityContext": {"procMount": "Unmasked"}}),
    (
        "securityContext/appArmorProfile/type",
        {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}},
    ),
    (
        "securityContext/seLinuxOptions/user",
        {"securityContext": {"seLinuxOptions": {"user": "system_u"}}},
    ),
    *(
        (
            "securityContext/capabilities/add/0",
            {"securityContext": {"capabilities": {"add": [name]}}},
        )
        for name in ("SYS_ADMIN", "NET_ADMIN", "NET_RAW", "SYS_PTRACE", "ALL", "sys_admin", "BPF")
    ),
    ("ports/0/hostPort", {"ports": [{"containerPort": 80, "hostPort": 8080}]}),
    *(
        ("env/0/name", {"env": [{"name": name, "value": "0"}]})
        for name in (
            "NVIDIA_VISIBLE_DEVICES",
            "CUDA_VISIBLE_DEVICES",
            "HIP_VISIBLE_DEVICES",
            "ROCR_VISIBLE_DEVICES",
            "GPU_DEVICE_ORDINAL",
        )
    ),
    (
        "volumeMounts/0/mountPath",
        {"volumeMounts": [{"name": "a", "mountPath": "/var/run/nvidia-container-devices/all"}]},
    ),
]


@pytest.mark.parametrize(("place", "pod"), UNSAFE_PODS)
def test_an_unsafe_pod_is_refused_unless_allowed(place: str, pod: dict[str, Any]) -> None:
    error = refusal_of(a_manifest(pod=pod))
    assert (type(error), error.pointer) == (UnsafeTemplate, f"{POD}/{place}")
    assert read_job(a_manifest(pod=pod), ALLOWING)


@pytest.mark.parametrize("kind", ["containers", "initContainers", "ephemeralContainers"])
@pytest.mark.parametrize(("place", "fields"), UNSAFE_CONTAINERS)
def test_an_unsafe_container_is_refused_wherever_it_is(
    place: str, fields: dict[str, Any], kind: str
) -> None:
    other = a_container(**{"name": "other", **fields})
    listed = [a_container(), other] if kind == "containers" else [other]
    document = a_manifest(pod={kind: listed})
    error = refusal_of(document)
    assert type(error) is UnsafeTemplate
    if kind != "ephemeralContainers":
        assert error.pointer == f"{POD}/{kind}/{len(listed) - 1}/{place}"
    assert read_job(document, ALLOWING)


def test_a_safe_master_does_not_hide_an_unsafe_worker() -> None:
    document = a_manifest()
    document["spec"]["pytorchReplicaSpecs"]["Worker"] = {
        "template": {"spec": {"containers": [a_container()], "hostPID": True}}
    }
    error = refusal_of(document)
    assert error.pointer == "/spec/pytorchReplicaSpecs/Worker/template/spec/hostPID"


@pytest.mark.parametrize("key", ["cdi.k8s.io/gpu", "scheduling.koordinator.sh/device-allocated"])
def test_annotations_that_reach_devices_are_unsafe(key: str) -> None:
    document = a_manifest()
    template = document["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    template["metadata"] = {"annotations": {key: "x"}}
    assert type(refusal_of(document)) is UnsafeTemplate
    assert read_job(document, ALLOWING)


def test_pods_with_finalizers_are_unsafe_for_they_would_keep_their_devices() -> None:
    document = a_manifest()
    document["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["metadata"] = {
        "finalizers": ["a/b"]
    }
    assert refusal_of(document).pointer == f"{MASTER}/template/metadata/finalizers"


@pytest.mark.parametrize(
    "fields",
    [
        {"env": [{"name": "TRAINING_GATEWAY_GPUS", "value": "0"}]},
        {"envFrom": [{"prefix": "TRAINING_GATEWAY_", "configMapRef": {"name": "a"}}]},
    ],
)
@pytest.mark.parametrize("options", [ReadOptions(), ALLOWING])
def test_the_gateways_own_variables_stay_refused(
    fields: dict[str, Any], options: ReadOptions
) -> None:
    init = a_container(**{"name": "init", **fields})
    for document in (a_manifest(fields), a_manifest(pod={"initContainers": [init]})):
        assert type(refusal_of(document, options)) is UnsafeTemplate


@pytest.mark.parametrize("kind", ["labels", "annotations"])
@pytest.mark.parametrize("options", [ReadOptions(), ALLOWING])
def test_the_gateways_own_keys_on_templates_stay_refused(kind: str, options: ReadOptions) -> None:
    document = a_manifest()
    template = document["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    template["metadata"] = {kind: {"training-gateway.io/node": "n"}}
    assert type(refusal_of(document, options)) is UnsafeTemplate


def test_a_pod_that_names_its_node_is_refused_even_when_unsafe_is_allowed() -> None:
    document = a_manifest(pod={"nodeName": "n"})
    assert type(refusal_of(document)) is UnsafeTemplate
    assert type(refusal_of(document, ALLOWING)) is InvalidInput


@pytest.mark.parametrize(
    "container",
    [
        {"securityContext": {"capabilities": {"add": ["IPC_LOCK"], "drop": ["ALL"]}}},
        {"securityContext": {"privileged": False, "runAsUser": 0, "procMount": "Default"}},
        {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}},
        {"ports": [{"containerPort": 80, "hostPort": 0}]},
        {"env": [{"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "all"}]},
        {"volumeMounts": [{"name": "a", "mountPath": "/var/data"}]},
    ],
)
def test_what_training_needs_is_not_unsafe(container: dict[str, Any]) -> None:
    pod = {"volumes": [{"name": "a", "emptyDir": {"medium": "Memory"}}], "hostNetwork": False}
    assert read_job(a_manifest(container, pod=pod))
