"""The statuses a kubelet writes for a pod, as strategic merge patches; pure.

Conditions are merged by type on the server, container statuses are replaced as a whole.
"""

from datetime import UTC, datetime

from tests.cluster.harness.rest import JsonObject
from tests.cluster.harness.scripts import Ending

MAIN_CONTAINER = "pytorch"
COMPLETED = Ending()


def stamp() -> str:
    """Give the present second as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def waiting(pod: JsonObject, reason: str) -> JsonObject:
    """Give the status of a pod whose containers cannot start yet."""
    state = {"waiting": {"reason": reason}}
    statuses = [container_status(spec, state, 0) for spec in pod["spec"]["containers"]]
    return patch_of(pod, phase="Pending", is_ready=False, containers=statuses)


def running(pod: JsonObject, restarts: int, pod_ip: str) -> JsonObject:
    """Give the status of a pod whose containers run, its init containers being done."""
    state = {"running": {"startedAt": stamp()}}
    statuses = [
        container_status(spec, state, restarts, is_ready=True) for spec in pod["spec"]["containers"]
    ]
    body = patch_of(pod, phase="Running", is_ready=True, containers=statuses)
    done = {"terminated": terminated(COMPLETED)}
    body["status"]["initContainerStatuses"] = [
        container_status(spec, done, 0, is_ready=True)
        for spec in pod["spec"].get("initContainers", [])
    ]
    body["status"] |= {
        "hostIP": "127.0.0.1",
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "startTime": stamp(),
    }
    return body


def finished(pod: JsonObject, ending: Ending, restarts: int) -> JsonObject:
    """Give the status of a pod that ended; a side container is taken to end well."""
    names = [spec["name"] for spec in pod["spec"]["containers"]]
    main = MAIN_CONTAINER if MAIN_CONTAINER in names else names[0]
    statuses = [
        container_status(
            spec,
            {"terminated": terminated(ending if spec["name"] == main else COMPLETED)},
            restarts,
        )
        for spec in pod["spec"]["containers"]
    ]
    is_good = ending.exit_code == 0 and not ending.reason
    body = patch_of(
        pod, phase="Succeeded" if is_good else "Failed", is_ready=False, containers=statuses
    )
    if ending.reason:
        body["status"] |= {"reason": ending.reason, "message": ending.message}
    return body


def restarts_in_place(pod: JsonObject, ending: Ending) -> bool:
    """Say whether a kubelet would start the containers again in the same pod."""
    policy = pod["spec"].get("restartPolicy", "Always")
    if ending.reason or policy == "Never":
        return False
    return policy == "Always" or ending.exit_code != 0


def terminated(ending: Ending) -> JsonObject:
    """Give the terminated state of a container."""
    return {
        "exitCode": ending.exit_code,
        "reason": "Completed" if ending.exit_code == 0 else "Error",
        "startedAt": stamp(),
        "finishedAt": stamp(),
    }


def container_status(
    spec: JsonObject, state: JsonObject, restarts: int, *, is_ready: bool = False
) -> JsonObject:
    """Give the status of one container."""
    return {
        "name": spec["name"],
        "image": spec["image"],
        "imageID": f"fake://{spec['image']}",
        "ready": is_ready,
        "started": "running" in state,
        "restartCount": restarts,
        "state": state,
    }


def patch_of(
    pod: JsonObject, *, phase: str, is_ready: bool, containers: list[JsonObject]
) -> JsonObject:
    """Give the common part of a status patch; the uid keeps it off a namesake."""
    ready = "True" if is_ready else "False"
    kinds = {"Initialized": "True", "ContainersReady": ready, "Ready": ready}
    return {
        "metadata": {"uid": pod["metadata"]["uid"]},
        "status": {
            "phase": phase,
            "conditions": [
                {"type": kind, "status": value, "lastTransitionTime": stamp()}
                for kind, value in kinds.items()
            ],
            "containerStatuses": containers,
        },
    }
