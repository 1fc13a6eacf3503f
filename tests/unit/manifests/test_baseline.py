"""The baseline of the Pod Security Standards holds, control by control, and no more than it."""

from typing import Any

import pytest

from gateway.errors import UnsafeTemplate
from gateway.manifests import ReadOptions, read_job
from gateway.manifests.safety import CAPABILITIES, VISIBLE_DEVICES
from tests.unit.manifests.building import MASTER, POD, a_container, a_manifest, refusal_of

ALLOWING = ReadOptions(allow_unsafe_templates=True)
HINT = "remove it, or ask an admin to allow unsafe templates"

LEVELS = ["pod", "containers", "initContainers"]


def with_security(level: str, security: dict[str, Any]) -> dict[str, Any]:
    """Give a manifest with this security context, on the pod or on one container."""
    if level == "pod":
        return a_manifest(pod={"securityContext": security})
    other = a_container(name="other", securityContext=security)
    listed = [a_container(), other] if level == "containers" else [other]
    return a_manifest(pod={level: listed})


def place_of(level: str) -> str:
    return {
        "pod": f"{POD}/securityContext",
        "containers": f"{POD}/containers/1/securityContext",
        "initContainers": f"{POD}/initContainers/0/securityContext",
    }[level]


PROFILES = [
    ({"seLinuxOptions": {"type": "spc_t"}}, "seLinuxOptions/type", "SELinux type"),
    ({"seLinuxOptions": {"type": "unconfined_t"}}, "seLinuxOptions/type", "SELinux type"),
    ({"seLinuxOptions": {"user": "root"}}, "seLinuxOptions/user", "SELinux identity"),
    ({"seLinuxOptions": {"role": "sysadm_r"}}, "seLinuxOptions/role", "SELinux identity"),
    ({"seccompProfile": {"type": "Unconfined"}}, "seccompProfile/type", "seccompProfile"),
    ({"appArmorProfile": {"type": "Unconfined"}}, "appArmorProfile/type", "appArmorProfile"),
    ({"windowsOptions": {"hostProcess": True}}, "windowsOptions/hostProcess", "host process"),
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("security", "place", "word"), PROFILES)
def test_an_unsafe_profile_is_refused_on_the_pod_and_on_every_container(
    level: str, security: dict[str, Any], place: str, word: str
) -> None:
    document = with_security(level, security)
    error = refusal_of(document)
    assert (type(error), error.pointer) == (UnsafeTemplate, f"{place_of(level)}/{place}")
    assert word in error.detail
    assert error.hint == HINT
    assert read_job(document, ALLOWING).name == "job"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "security",
    [
        {"seLinuxOptions": {"type": kind}}
        for kind in ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
    ]
    + [
        {"seLinuxOptions": {"level": "s0:c123,c456"}},
        {"seLinuxOptions": {"user": "", "role": ""}},
        {"seccompProfile": {"type": "Localhost", "localhostProfile": "a.json"}},
        {"appArmorProfile": {"type": "RuntimeDefault"}},
        {"windowsOptions": {"hostProcess": False}},
        {"runAsNonRoot": True, "runAsUser": 1000},
        {},
    ],
)
def test_what_the_baseline_allows_is_taken(level: str, security: dict[str, Any]) -> None:
    spec = read_job(with_security(level, security))
    assert spec == read_job(with_security(level, security), ALLOWING)


@pytest.mark.parametrize("name", sorted(CAPABILITIES))
@pytest.mark.parametrize("level", ["containers", "initContainers"])
def test_every_capability_of_the_baseline_and_ipc_lock_may_be_added(level: str, name: str) -> None:
    assert read_job(with_security(level, {"capabilities": {"add": [name], "drop": ["ALL"]}}))


@pytest.mark.parametrize(
    "name", ["CAP_IPC_LOCK", "ipc_lock", "NET_RAW", "SYS_MODULE", "SYS_TIME", "", "ALL"]
)
def test_any_other_capability_is_refused_beside_those_that_are_fine(name: str) -> None:
    document = with_security("containers", {"capabilities": {"add": ["CHOWN", name]}})
    error = refusal_of(document)
    assert error.pointer == f"{place_of('containers')}/capabilities/add/1"
    assert error.value == name


@pytest.mark.parametrize(
    "name",
    [
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
    ],
)
def test_settings_of_the_kernel_that_stay_in_the_pod_are_taken(name: str) -> None:
    assert read_job(with_security("pod", {"sysctls": [{"name": name, "value": "1"}]}))


@pytest.mark.parametrize("name", ["kernel.msgmax", "net.core.somaxconn", "vm.swappiness", ""])
def test_settings_of_the_kernel_that_reach_the_node_are_refused(name: str) -> None:
    fine = {"name": "net.ipv4.tcp_rmem", "value": "1"}
    error = refusal_of(with_security("pod", {"sysctls": [fine, {"name": name, "value": "1"}]}))
    assert error.pointer == f"{POD}/securityContext/sysctls/1/name"
    assert error.detail.endswith("this kernel setting reaches beyond the pod")


def with_template_annotation(key: str, value: str) -> dict[str, Any]:
    document = a_manifest()
    template = document["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    template["metadata"] = {"annotations": {key: value}}
    return document


@pytest.mark.parametrize("container", ["pytorch", "init", "any"])
def test_apparmor_cannot_be_switched_off_by_its_old_annotation(container: str) -> None:
    key = f"container.apparmor.security.beta.kubernetes.io/{container}"
    error = refusal_of(with_template_annotation(key, "unconfined"))
    assert type(error) is UnsafeTemplate
    assert error.pointer == f"{MASTER}/template/metadata/annotations/{key.replace('/', '~1')}"
    for value in ("runtime/default", "localhost/mine"):
        assert read_job(with_template_annotation(key, value))
    assert read_job(with_template_annotation(key, "unconfined"), ALLOWING)


CALLBACKS = [
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle/postStart",
    "lifecycle/preStop",
]


def calling(path: str, kind: str, host: str | None) -> dict[str, Any]:
    call = {kind: {"port": 80} if host is None else {"port": 80, "host": host}}
    *outer, last = path.split("/")
    return {outer[0]: {last: call}} if outer else {last: call}


@pytest.mark.parametrize("kind", ["httpGet", "tcpSocket"])
@pytest.mark.parametrize("path", CALLBACKS)
def test_a_probe_or_hook_may_call_nobody_but_its_own_pod(path: str, kind: str) -> None:
    for host in ("169.254.169.254", "metadata.internal", "127.0.0.1"):
        error = refusal_of(a_manifest(calling(path, kind, host)))
        assert type(error) is UnsafeTemplate
        assert error.pointer == f"{POD}/containers/0/{path}/{kind}/host"
        assert "from the node's network" in error.detail
    for fine in (None, ""):
        assert read_job(a_manifest(calling(path, kind, fine)))


@pytest.mark.parametrize(
    "path",
    [
        "/var/run/nvidia-container-devices",
        "/var/run/nvidia-container-devices/0",
        "/var/run//nvidia-container-devices/all",
        "//var/run/nvidia-container-devices/all",
        "/var/./run/nvidia-container-devices/all",
        "/var/lib/../run/nvidia-container-devices/all",
        "var/run/nvidia-container-devices/all",
    ],
)
def test_no_spelling_of_a_mount_reaches_devices_beside_the_reservation(path: str) -> None:
    mount = {"name": "a", "mountPath": path}
    error = refusal_of(a_manifest({"volumeMounts": [{"name": "b", "mountPath": "/data"}, mount]}))
    assert error.pointer == f"{POD}/containers/0/volumeMounts/1/mountPath"
    assert error.detail.endswith(f"{path} reaches devices beside the reservation")


@pytest.mark.parametrize("path", ["/var/run", "/data/var/run/nvidia-container-devices", "/", ""])
def test_other_mounts_are_left_alone(path: str) -> None:
    assert read_job(a_manifest({"volumeMounts": [{"name": "a", "mountPath": path}]}))


@pytest.mark.parametrize("name", sorted(VISIBLE_DEVICES))
def test_variables_that_choose_devices_are_refused_whatever_they_say(name: str) -> None:
    for entry in (
        {"name": name, "value": ""},
        {"name": name, "value": "none"},
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ):
        error = refusal_of(a_manifest({"env": [{"name": "A", "value": "1"}, entry]}))
        assert error.pointer == f"{POD}/containers/0/env/1/name"
        assert error.detail.endswith(f"{name} reaches devices beside the reservation")
    assert read_job(a_manifest({"env": [{"name": f"MY_{name}", "value": "0"}]}))


@pytest.mark.parametrize("workers", [0, 2])
def test_the_first_unsafe_field_of_the_master_is_the_one_that_is_told(workers: int) -> None:
    unsafe = {"hostNetwork": True, "hostPID": True, "volumes": [{"name": "a", "hostPath": {}}]}
    error = refusal_of(a_manifest({"env": [{"name": "A"}]}, pod=unsafe, workers=workers))
    assert error.pointer == f"{POD}/hostNetwork"
    assert error.detail.endswith("the node's network is shared by all its pods")


@pytest.mark.parametrize(
    ("name", "is_reserved"),
    [
        ("TRAINING_GATEWAY_", True),
        ("TRAINING_GATEWAY_RANK", True),
        ("TRAINING_GATEWAY", False),
        ("training_gateway_rank", False),
        ("MY_TRAINING_GATEWAY_RANK", False),
    ],
)
@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_the_reserved_prefix_of_variables_is_exact(
    name: str, kind: str, *, is_reserved: bool
) -> None:
    other = a_container(name="other", env=[{"name": name, "value": "1"}])
    document = a_manifest(pod={kind: [a_container(), other] if kind == "containers" else [other]})
    if not is_reserved:
        assert read_job(document)
        return
    error = refusal_of(document, ALLOWING)
    assert error.hint == "rename the variable"
    assert error.pointer.endswith("/env/0/name")
