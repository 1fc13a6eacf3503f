"""Refuses what a pod template could harm others with, or reach devices that it was not given.

Follows the baseline of the Kubernetes Pod Security Standards, with IPC_LOCK allowed because RDMA
needs it, and adds ways around the reservation. Everything holds for every container of every kind.
Only the gateway's reserved names stay refused when unsafe templates are allowed.
"""

from collections.abc import Iterator
from typing import Final, NoReturn

from gateway.core.vocabulary import ENVIRONMENT_PREFIX
from gateway.errors import UnsafeTemplate
from gateway.manifests.naming import refuse_reserved
from gateway.manifests.spot import Spot

VISIBLE_DEVICES: Final = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "GPU_DEVICE_ORDINAL",
        "HIP_VISIBLE_DEVICES",
        "NVIDIA_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
    }
)
CAPABILITIES: Final = frozenset(
    [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "IPC_LOCK",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
_POD_FLAGS: Final = ("hostNetwork", "hostPID", "hostIPC")
_ACCOUNTS: Final = ("serviceAccountName", "serviceAccount")
_DEVICE_ANNOTATIONS: Final = ("cdi.k8s.io/", "scheduling.koordinator.sh/device-")
_DEVICE_MOUNT: Final = "/var/run/nvidia-container-devices"
_SYSCTLS: Final = frozenset(
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
    ]
)
_CONTAINER_LISTS: Final = ("containers", "initContainers", "ephemeralContainers")
_ALLOWING: Final = "remove it, or ask an admin to allow unsafe templates"


def check_reserved(template: Spot) -> None:
    """Refuse names that only the gateway may set. Raises UnsafeTemplate."""
    refuse_reserved(template.at("metadata"), ("labels", "annotations"))
    for container in _containers(template.at("spec")):
        names = [item.at("name") for item in container.at("env").items()]
        names += [item.at("prefix") for item in container.at("envFrom").items()]
        for name in names:
            if name.text().startswith(ENVIRONMENT_PREFIX):
                raise name.refuse(
                    f"{name.text()[:80]} is reserved: the gateway sets {ENVIRONMENT_PREFIX} itself",
                    hint="rename the variable",
                    kind=UnsafeTemplate,
                )


def check_safety(template: Spot) -> None:
    """Refuse what is unsafe. Raises UnsafeTemplate with the first such field."""
    metadata, pod = template.at("metadata"), template.at("spec")
    if metadata.at("finalizers").items():
        _refuse(metadata.at("finalizers"), "pods with finalizers would keep their devices")
    for key, spot in metadata.at("annotations").entries():
        if key.startswith(_DEVICE_ANNOTATIONS):
            _refuse(spot, f"{key} reaches devices beside the reservation")
    _check_pod(pod)
    for container in _containers(pod):
        _check_container(container)


def _check_pod(pod: Spot) -> None:
    for key in _POD_FLAGS:
        if pod.at(key).flag():
            _refuse(pod.at(key), f"{key} shares the node's own with the pod")
    for key in _ACCOUNTS:
        if pod.at(key).text():
            _refuse(pod.at(key), "a service account may hold rights that the user does not")
    if pod.at("nodeName").text():
        _refuse(pod.at("nodeName"), "nodeName goes around the reservation of devices")
    if pod.at("ephemeralContainers").items():
        _refuse(pod.at("ephemeralContainers"), "ephemeral containers are for running pods only")
    for volume in pod.at("volumes").items():
        if not volume.at("hostPath").is_missing:
            _refuse(volume.at("hostPath"), "hostPath opens the node's files to the pod")
    security = pod.at("securityContext")
    _check_profiles(security)
    for sysctl in security.at("sysctls").items():
        if sysctl.at("name").text() not in _SYSCTLS:
            _refuse(sysctl.at("name"), "this kernel setting reaches beyond the pod")


def _check_container(container: Spot) -> None:
    security = container.at("securityContext")
    if security.at("privileged").flag():
        _refuse(security.at("privileged"), "a privileged container owns the node")
    for item in security.at("capabilities", "add").items():
        if item.text() not in CAPABILITIES:
            _refuse(item, f"the capability {item.text()[:80]} reaches beyond the pod")
    if security.at("procMount").text() not in {"", "Default"}:
        _refuse(security.at("procMount"), "an unmasked /proc reaches beyond the pod")
    _check_profiles(security)
    for port in container.at("ports").items():
        if port.at("hostPort").value:
            _refuse(port.at("hostPort"), "hostPort takes a port of the node")
    for item in container.at("env").items():
        if item.at("name").text() in VISIBLE_DEVICES:
            _refuse(item.at("name"), f"{item.at('name').value} reaches devices of other jobs")
    for mount in container.at("volumeMounts").items():
        if mount.at("mountPath").text().startswith(_DEVICE_MOUNT):
            _refuse(mount.at("mountPath"), "this mount reaches devices of other jobs")


def _check_profiles(security: Spot) -> None:
    """Check what pods and containers have alike: profiles, SELinux, Windows host processes."""
    for key in ("seccompProfile", "appArmorProfile"):
        if security.at(key, "type").text() == "Unconfined":
            _refuse(security.at(key, "type"), f"an unconfined {key} reaches beyond the pod")
    for key in ("user", "role"):
        if security.at("seLinuxOptions", key).text():
            _refuse(security.at("seLinuxOptions", key), "a chosen SELinux identity is unsafe")
    if security.at("windowsOptions", "hostProcess").flag():
        _refuse(security.at("windowsOptions", "hostProcess"), "a host process owns the node")


def _containers(pod: Spot) -> Iterator[Spot]:
    for key in _CONTAINER_LISTS:
        yield from pod.at(key).items()


def _refuse(spot: Spot, why: str) -> NoReturn:
    raise spot.refuse(why, hint=_ALLOWING, kind=UnsafeTemplate)
