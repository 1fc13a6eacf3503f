"""Turns a launch into the record that its supervisor works by. Pure, but for looking at folders."""

from pathlib import Path

from gateway.backends.base import Launch
from gateway.backends.local.program import read_program
from gateway.backends.local.records import LaunchRecord, ReplicaRecord
from gateway.backends.local.rendezvous import read_rendezvous


def identity_of(launch: Launch) -> str:
    """Give what must be equal for an object to be this attempt's own."""
    return f"{launch.job_id}/{launch.attempt}/{launch.spec_digest}"


def record_of(
    launch: Launch,
    *,
    uid: str,
    heartbeat_file: Path,
    orphan_seconds: float,
    most_restarts: int,
) -> LaunchRecord:
    """Read every replica's program; raises ClusterRejected for what cannot run here.

    Replicas run where the gateway runs unless they name a working folder, so that a relative path
    in a command means what it means in the user's shell.
    """
    folder = Path.cwd()
    return LaunchRecord(
        uid=uid,
        identity=identity_of(launch),
        namespace=launch.namespace,
        name=launch.object_name,
        replicas=tuple(
            ReplicaRecord(
                pod_set=pod.pod_set,
                index=pod.index,
                rank=pod.rank,
                node=pod.node,
                program=read_program(launch, pod, folder),
            )
            # By rank, since everything later finds a replica by its position.
            for pod in sorted(launch.pods, key=lambda pod: pod.rank)
        ),
        rendezvous=read_rendezvous(launch.manifest),
        heartbeat_file=str(heartbeat_file),
        orphan_seconds=orphan_seconds,
        most_restarts=most_restarts,
    )
