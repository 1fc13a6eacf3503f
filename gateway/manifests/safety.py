"""Refuses what a pod template could harm others with, or reach devices that it was not given.

Follows the baseline of the Kubernetes Pod Security Standards, with IPC_LOCK allowed because RDMA
needs it, and adds ways around the reservation. Everything holds for every container of every kind.
Only the gateway's reserved names stay refused when unsafe templates are allowed.
"""

from collections.abc import Iterator
from posixpath import normpath
from typing import Final

from gateway.core.vocabulary import ENVIRONMENT_PREFIX
from gateway.errors import UnsafeTemplate
from gateway.manifests.naming import refuse_reserved
from gateway.manifests.spot import Spot

# `NVIDIA_VISIBLE_DEVICES: all` makes NVIDIA's runtime mount every GPU of the node, by default
# even into pods that asked for none. The others change which of the granted ones are used.
VISIBLE_DEVICES: Final = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "GPU_DEVICE_ORDINAL",
        "HIP_VISIBLE_DEVICES",
        "NVIDIA_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
    }
)
# Baseline, and IPC_LOCK: RDMA pins the memory that it registers, beyond RLIMIT_MEMLOCK.
# NET_RAW is not among them, though some container runtimes grant it by default.
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
_POD_FLAGS: Final = {
    "hostNetwork": "the node's network is shared by all its pods",
    "hostPID": "the node's processes could be seen and stopped",
    "hostIPC": "the node's shared memory could be read",
}
# Not in the baseline, but here users submit into namespaces whose accounts may do more than they.
_POD_TEXTS: Final = {
    "serviceAccountName": "a service account may hold rights that the user does not",
    "serviceAccount": "a service account may hold rights that the user does not",
    "nodeName": "nodeName goes around the reservation of devices",
}
# The container runtime injects CDI devices by annotation; Koordinator reads its grants from one.
_DEVICE_ANNOTATIONS: Final = ("cdi.k8s.io/", "scheduling.koordinator.sh/device-")
# The second way to ask NVIDIA's runtime for devices: a mount below this path, named like one.
_DEVICE_MOUNT: Final = "/var/run/nvidia-container-devices"
# Namespaced and safe, as of Kubernetes 1.32; each is listed since the version that isolates it.
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
_SELINUX_TYPES: Final = frozenset(
    ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"]
)
# Before appArmorProfile came with Kubernetes 1.30, one annotation for each container.
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS: Final = ("postStart", "preStop")
_CONTAINER_LISTS: Final = ("containers", "initContainers", "ephemeralContainers")
_BESIDE: Final = "{} reaches devices beside the reservation"
_ALLOWING: Final = "remove it, or ask an admin to allow unsafe templates"


def check_reserved(template: Spot) -> None:
    """Refuse names that only the gateway may set. Raises UnsafeTemplate."""
    refuse_reserved(template.at("metadata"), ("labels", "annotations"))
    # `env` wins over `envFrom`, so a ConfigMap cannot replace what the gateway sets. A prefix that
    # spells the reserved one could still add names that look like the gateway's.
    for container in _containers(template.at("spec")):
        for name in _variable_names(container):
            name.demand(
                not name.text().startswith(ENVIRONMENT_PREFIX),
                f"{name.text()[:80]} is reserved: the gateway sets {ENVIRONMENT_PREFIX} itself",
                "rename the variable",
                kind=UnsafeTemplate,
            )


def _variable_names(container: Spot) -> list[Spot]:
    """Give the names of a container's variables, and the prefixes of those it takes over."""
    names = [item.at("name") for item in container.at("env").items()]
    return names + [item.at("prefix") for item in container.at("envFrom").items()]


def check_safety(template: Spot) -> None:
    """Refuse what is unsafe. Raises UnsafeTemplate with the first such field."""
    metadata, pod = template.at("metadata"), template.at("spec")
    _require_none(metadata.at("finalizers").items(), "pods with finalizers keep their devices")
    for key, spot in metadata.at("annotations").entries():
        _require(spot, not key.startswith(_DEVICE_ANNOTATIONS), _BESIDE.format(key))
        is_confined = not key.startswith(_APP_ARMOR) or spot.text() != "unconfined"
        _require(spot, is_confined, "an unconfined AppArmor profile reaches beyond the pod")
    _check_pod(pod)
    for container in _containers(pod):
        _check_container(container)


def _check_pod(pod: Spot) -> None:
    for key, why in _POD_FLAGS.items():
        _require(pod.at(key), not pod.at(key).flag(), why)
    for key, why in _POD_TEXTS.items():
        _require(pod.at(key), not pod.at(key).text(), why)
    debuggers = pod.at("ephemeralContainers").items()
    _require_none(debuggers, "ephemeral containers are for running pods only")
    for volume in pod.at("volumes").items():
        path = volume.at("hostPath")
        _require(path, path.is_missing, "hostPath opens the node's files to the pod")
    security = pod.at("securityContext")
    _check_profiles(security)
    for sysctl in security.at("sysctls").items():
        name = sysctl.at("name")
        _require(name, name.text() in _SYSCTLS, "this kernel setting reaches beyond the pod")


def _check_container(container: Spot) -> None:
    _check_security(container.at("securityContext"))
    for port in container.at("ports").items():
        _require(port.at("hostPort"), not port.at("hostPort").value, "it takes a port of the node")
    for item in container.at("env").items():
        name = item.at("name")
        _require(name, name.text() not in VISIBLE_DEVICES, _BESIDE.format(name.value))
    for mount in container.at("volumeMounts").items():
        path = mount.at("mountPath")
        is_harmless = not _cleaned(path.text()).startswith(_DEVICE_MOUNT)
        _require(path, is_harmless, _BESIDE.format(path.value))
    _check_callbacks(container)


def _cleaned(path: str) -> str:
    # As the runtime cleans it before it compares; POSIX alone would keep two slashes at the start.
    return normpath("/" + path.lstrip("/"))


def _check_callbacks(container: Spot) -> None:
    """Refuse probes and hooks that name a host: the kubelet would call it in the pod's stead."""
    hooks = [container.at("lifecycle", key) for key in _HOOKS]
    for callback in (*map(container.at, _PROBES), *hooks):
        for kind in ("httpGet", "tcpSocket"):
            host = callback.at(kind, "host")
            _require(host, not host.text(), "it would be called from the node's network")


def _check_security(security: Spot) -> None:
    privileged, mount = security.at("privileged"), security.at("procMount")
    _require(privileged, not privileged.flag(), "a privileged container owns the node")
    _require(mount, mount.text() in {"", "Default"}, "an unmasked /proc reaches beyond the pod")
    for item in security.at("capabilities", "add").items():
        is_known = item.text() in CAPABILITIES
        _require(item, is_known, f"the capability {item.text()[:80]} reaches beyond the pod")
    _check_profiles(security)


def _check_profiles(security: Spot) -> None:
    """Check what pods and containers have alike: profiles, SELinux, Windows host processes."""
    for key in ("seccompProfile", "appArmorProfile"):
        # Localhost profiles pass: an admin has put them on the node.
        kind = security.at(key, "type")
        _require(kind, kind.text() != "Unconfined", f"an unconfined {key} reaches beyond the pod")
    label = security.at("seLinuxOptions", "type")
    _require(label, label.text() in _SELINUX_TYPES, "this SELinux type reaches beyond the pod")
    for key in ("user", "role"):
        identity = security.at("seLinuxOptions", key)
        _require(identity, not identity.text(), "a chosen SELinux identity is unsafe")
    process = security.at("windowsOptions", "hostProcess")
    _require(process, not process.flag(), "a host process owns the node")


def _containers(pod: Spot) -> Iterator[Spot]:
    for key in _CONTAINER_LISTS:
        yield from pod.at(key).items()


def _require(spot: Spot, is_safe: bool, why: str) -> None:  # noqa: FBT001 - reads as a sentence
    spot.demand(is_safe, why, _ALLOWING, kind=UnsafeTemplate)


def _require_none(items: list[Spot], why: str) -> None:
    for item in items[:1]:
        _require(item.parent or item, False, why)
