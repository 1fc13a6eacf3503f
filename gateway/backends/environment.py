"""What a pod is told about its reservation: annotations, and the environment made of them.

Pure. The names are part of the public surface; user templates may not set them.
"""

from gateway.backends.base import Launch, PlannedDevice, PlannedPod
from gateway.core.vocabulary import ENVIRONMENT_PREFIX, LABEL_PREFIX, DeviceKind

ANNOTATIONS = {
    "NODE": "node",
    "GPUS": "gpus",
    "NICS": "nics",
    "DEVICES": "devices",
    "RANK": "rank",
    "JOB_ID": "job-id",
    "ATTEMPT": "attempt",
}
"""Environment suffix to annotation suffix; the value of one is the value of the other."""


def plan_annotations(launch: Launch, pod: PlannedPod) -> dict[str, str]:
    """Give the annotations that carry one pod's plan.

    `gpus` and `nics` are comma-separated device ids (UUID where known, else name), `devices` is
    every device as kind:ordinal:id.
    """
    values = {
        "node": pod.node,
        "gpus": _identities(pod, DeviceKind.GPU),
        "nics": _identities(pod, DeviceKind.RDMA),
        # Kind and ordinal too, for a program that counts devices as its driver numbers them.
        "devices": ",".join(
            f"{device.kind}:{device.ordinal}:{device.uuid or device.name}" for device in pod.devices
        ),
        "rank": str(pod.rank),
        "job-id": launch.job_id,
        "attempt": str(launch.attempt),
    }
    return {LABEL_PREFIX + suffix: value for suffix, value in values.items()}


def plan_environment(launch: Launch, pod: PlannedPod) -> dict[str, str]:
    """Give the environment that a pod of this plan sees."""
    annotations = plan_annotations(launch, pod)
    return {
        ENVIRONMENT_PREFIX + name: annotations[LABEL_PREFIX + suffix]
        for name, suffix in ANNOTATIONS.items()
    }


def _identities(pod: PlannedPod, kind: DeviceKind) -> str:
    return ",".join(_identity(device) for device in pod.devices if device.kind is kind)


def _identity(device: PlannedDevice) -> str:
    # CUDA_VISIBLE_DEVICES takes UUIDs, which survive a reboot that numbers GPUs anew; NCCL knows
    # an RDMA device by its name.
    uuid = device.uuid if device.kind is DeviceKind.GPU else ""
    return uuid or device.name
