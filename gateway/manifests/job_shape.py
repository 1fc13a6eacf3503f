"""Checks the PyTorchJob itself: its fields, run policy, replica specs and elastic policy.

What the operator's webhook, the CRD and the gateway's own rules would refuse later is refused here
with its place. The pod templates below are judged elsewhere. Source: training operator 1.9.
"""

import re
from typing import Any, Final

from gateway.core.vocabulary import ReplicaType
from gateway.errors import NotSupportedYet
from gateway.manifests import known_fields as known
from gateway.manifests.spot import Spot, is_whole
from gateway.schemas.suggesting import did_you_mean

# The CRD has no enum for these two: a typo is stored, and then every pod is refused at creation.
RESTART_POLICIES: Final = ("Always", "OnFailure", "Never", "ExitCode")
CLEAN_POD_POLICIES: Final = ("None", "Running", "All")
# The only other value, Kueue's multikueue, makes the operator ignore the job for good.
OPERATOR: Final = "kubeflow.org/training-operator"
RENDEZVOUS: Final = ("c10d", "etcd", "etcd-v2", "static")
PROCESSES: Final = ("auto", "cpu", "gpu")
_PROCESS_COUNT: Final = re.compile(r"0*[1-9][0-9]{0,5}")
MAX_REPLICAS: Final = 10_000
# kubectl's copy of the whole object: as large again, and wrong as soon as a field is overridden.
_DROPPED_ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"


def drop_server_fields(manifest: dict[str, Any]) -> None:
    """Leave out what only the API server writes, so that an exported object can be submitted."""
    manifest.pop("status", None)
    metadata = Spot(manifest).at("metadata").fields()
    for key in known.SERVER_METADATA & metadata.keys():
        manifest["metadata"].pop(key)
    if _DROPPED_ANNOTATION in Spot(manifest).at("metadata", "annotations").fields():
        del manifest["metadata"]["annotations"][_DROPPED_ANNOTATION]


def check_job(document: Spot) -> dict[str, int]:
    """Check everything above the pod templates; gives the count of each replica type.

    Fills in nothing. Raises InvalidInput, or NotSupportedYet for what is not built.
    """
    known.refuse_unknown(document, known.TOP)
    _check_metadata(document.at("metadata"))
    spec = document.at("spec")
    spec.demand(bool(spec.fields()), "the job has no spec", "give spec.pytorchReplicaSpecs")
    known.refuse_unknown(spec, known.SPEC)
    _check_processes(spec)
    _check_run_policy(spec.at("runPolicy"))
    counts = _check_replicas(spec.at("pytorchReplicaSpecs"))
    _check_elastic(spec, counts)
    _check_scheduling(spec.at("runPolicy", "schedulingPolicy"), sum(counts.values()))
    return counts


def _check_metadata(metadata: Spot) -> None:
    known.refuse_unknown(metadata, known.METADATA)
    # An owner's deletion would take a running gang along; a finalizer would keep a stopped one.
    for key in ("ownerReferences", "finalizers"):
        spot = metadata.at(key)
        why = f"{key} would let others decide when the job is deleted"
        spot.demand(not spot.items(), why, "remove it")


def _check_processes(spec: Spot) -> None:
    spot = spec.at("nprocPerNode")
    if spot.is_missing:
        return
    spot.demand(
        # The CRD declares a string. Not turned to text here, for then the file would work through
        # the gateway and fail with kubectl.
        not is_whole(spot.value),
        "the cluster takes nprocPerNode as text only",
        f'put it into quotes: "{spot.value}"',
        allowed=(*PROCESSES, "a number as text"),
    )
    text = spot.text()
    if not _is_process_count(text):
        raise spot.refuse(
            f"{text[:80]!r} is not a number of processes",
            allowed=(*PROCESSES, "a number as text"),
            hint=did_you_mean(text, PROCESSES, 'write for example "8"'),
        )


def _is_process_count(text: str) -> bool:
    return text in PROCESSES or _PROCESS_COUNT.fullmatch(text) is not None


def _check_run_policy(policy: Spot) -> None:
    known.refuse_unknown(policy, known.RUN_POLICY)
    policy.at("cleanPodPolicy").choice(CLEAN_POD_POLICIES)
    policy.at("suspend").flag()
    for key in ("ttlSecondsAfterFinished", "backoffLimit"):
        policy.at(key).whole_or(0, 0, 2**31 - 1)
    owner = policy.at("managedBy")
    owner.demand(
        owner.text() in {"", OPERATOR},
        f"a job managed by {owner.text()[:80]} is ignored by the training operator",
        "remove managedBy",
        allowed=(OPERATOR,),
    )


def _check_scheduling(policy: Spot, total: int) -> None:
    known.refuse_unknown(policy, known.SCHEDULING_POLICY)
    least = policy.at("minAvailable")
    if not least.is_missing:
        # One more than replicas: the Master counts.
        require_whole_gang(least, least.whole(1, MAX_REPLICAS + 1), total)
    resources = policy.at("minResources")
    resources.demand(
        resources.is_missing,
        "minResources is not supported yet",
        "leave it out: the gateway computes what the gang needs",
        kind=NotSupportedYet,
    )


def require_whole_gang(spot: Spot, least: int, total: int) -> None:
    """Refuse a minimum that is not the whole gang."""
    spot.demand(
        least <= total,
        f"{least} pods at least, but the job has {total}",
        "lower it, or leave it out",
        allowed=(str(total),),
    )
    spot.demand(
        least >= total,
        "starting fewer pods than the whole gang is not supported yet",
        "leave it out: all pods start together",
        allowed=(str(total),),
        kind=NotSupportedYet,
    )


def _check_replicas(specs: Spot) -> dict[str, int]:
    for key, spot in specs.entries():
        _require_replica_type(key, spot)
    specs.demand(bool(specs.fields()), "the job has no replicas", "give Master, Worker or both")
    # Master first, whatever the order of the document: ranks are counted in this order.
    given = [kind for kind in ReplicaType if kind in specs.value]
    return {kind: _check_replica(specs.at(kind), kind) for kind in given}


def _require_replica_type(key: str, spot: Spot) -> None:
    types = tuple(ReplicaType)
    if key not in types:
        raise spot.refuse(
            f"{key[:80]!r} is not a replica type",
            allowed=types,
            hint=did_you_mean(key, types, "a PyTorchJob has Master and Worker"),
        )


def _check_replica(replica: Spot, kind: ReplicaType) -> int:
    known.refuse_unknown(replica, known.REPLICA)
    replica.at("restartPolicy").choice(RESTART_POLICIES)
    template = replica.at("template")
    known.refuse_unknown(template, known.TEMPLATE)
    inner = template.at("spec", "restartPolicy")
    inner.text()
    inner.demand(
        # It overwrites the template's with the replica's, which defaults to OnFailure, and only
        # warns by an event that nobody reads.
        inner.value in {None, replica.at("restartPolicy").text()},
        "the operator ignores the restartPolicy of a pod template",
        f"move it up, beside replicas of {kind}",
        allowed=RESTART_POLICIES,
    )
    return _replica_count(replica.at("replicas"), kind)


def _replica_count(spot: Spot, kind: ReplicaType) -> int:
    count = spot.whole_or(1, 0, MAX_REPLICAS)
    # The webhook's rule since 1.8: rank 0 is the one Master, and the rendezvous is its service.
    if kind is ReplicaType.MASTER:
        spot.demand(
            count == 1,
            f"a PyTorchJob has exactly 1 Master, not {count}",
            "write replicas: 1, and make the others Worker",
            allowed=("1",),
        )
    spot.demand(
        count > 0,
        "the operator refuses 0 workers",
        "leave Worker out",
        allowed=(f"1 to {MAX_REPLICAS}",),
    )
    return count


def _check_elastic(spec: Spot, counts: dict[str, int]) -> None:
    policy = spec.at("elasticPolicy")
    workers = counts.get(ReplicaType.WORKER, 0)
    if policy.is_missing:
        spec.at("pytorchReplicaSpecs").demand(
            # The operator accepts it; its pods then start without an address to meet at.
            ReplicaType.MASTER in counts,
            "with neither a Master nor an elasticPolicy no pod gets MASTER_ADDR or RANK",
            "add a Master with replicas: 1, or an elasticPolicy",
            allowed=("Master", "elasticPolicy"),
        )
        return
    known.refuse_unknown(policy, known.ELASTIC_POLICY)
    policy.demand(workers > 0, "an elasticPolicy needs Worker replicas", "add Worker")
    metrics, processes = policy.at("metrics"), policy.at("nProcPerNode")
    metrics.demand(
        metrics.is_missing,
        "scaling by metrics is not supported yet: it would add pods without devices",
        "remove metrics, and set minReplicas and maxReplicas to the Worker's replicas",
        kind=NotSupportedYet,
    )
    policy.at("rdzvBackend").choice(RENDEZVOUS)
    _check_elastic_range(policy, workers)
    processes.demand(
        processes.is_missing or spec.at("nprocPerNode").is_missing,
        "the number of processes is given twice",
        "keep spec.nprocPerNode only",
    )


def _check_elastic_range(policy: Spot, workers: int) -> None:
    lowest, highest = policy.at("minReplicas"), policy.at("maxReplicas")
    least = lowest.whole_or(workers, 1, MAX_REPLICAS)
    most = highest.whole_or(workers, 1, MAX_REPLICAS)
    # First what is wrong by itself, then what is only not built.
    for spot, is_fine in ((lowest, least <= workers), (highest, workers <= most)):
        spot.demand(
            is_fine,
            f"{least} to {most} workers, and {workers} replicas, do not agree",
            "set all three to the number of workers",
            allowed=("minReplicas <= replicas <= maxReplicas",),
        )
    for spot, bound in ((lowest, least), (highest, most)):
        spot.demand(
            bound == workers,
            "a changing number of workers is not supported yet",
            "set minReplicas and maxReplicas to the Worker's replicas",
            allowed=(str(workers),),
            kind=NotSupportedYet,
        )
