"""Turns one admission of a plan into the grant that the last judge takes or refuses. Pure."""

import hashlib
from collections.abc import Mapping

from gateway.core.admission import Admit
from gateway.core.devices.masks import ordinals_of
from gateway.core.jobs.request import RequestClass
from gateway.core.queues.definitions import Flavor
from gateway.core.resources import GPU, PODS, RDMA
from gateway.core.vocabulary import DeviceKind
from gateway.db.grants import GrantPod

MAX_OBJECT_NAME = 51
"""Leaves room for the replica type and a four-digit index within a Service's 63 characters."""
DEVICE_RESOURCES = frozenset({GPU, RDMA})
"""Granted one by one as devices, so not taken from a node's amounts."""


def grant_pods(
    admit: Admit, request: RequestClass, flavors: Mapping[str, Flavor]
) -> tuple[GrantPod, ...]:
    """Give the pods of a grant by rank: the Master first, then the Workers.

    Args:
        admit: what the plan gives to the gang.
        request: what its class asks for.
        flavors: those of the same definitions that the plan was made on, by name.
    """
    tolerations = {name: flavors[flavor].tolerations for name, flavor in admit.flavors}
    amounts = {
        pod_set.name: {
            # GPUs and NICs are granted one by one below; counted here as well they would be taken
            # twice.
            **{name: count for name, count in pod_set.per_pod if name not in DEVICE_RESOURCES},
            PODS: 1,
        }
        for pod_set in request.pod_sets
    }
    return tuple(
        GrantPod(
            pod_set=place.pod_set,
            index=place.index,
            rank=rank,
            node_id=place.node_id,
            amounts=amounts[place.pod_set],
            devices=(
                *((DeviceKind.GPU, bit) for bit in ordinals_of(place.gpu_mask)),
                *((DeviceKind.RDMA, bit) for bit in ordinals_of(place.nic_mask)),
            ),
            tolerations=tolerations.get(place.pod_set, ()),
        )
        # The plan is in the order of ranks, and this is where that becomes a fact.
        for rank, place in enumerate(admit.placements)
    )


def object_name(job_name: str, uid: str, attempt: int) -> str:
    """Give an attempt's object name: the job's name, a hash of its id, the attempt's number.

    Deterministic, so that a repeated create meets its own object; of its own for each attempt, so
    that late pods of an earlier one are never adopted.
    """
    # Five digits tell jobs apart that take a name one after another; the uid is never the same.
    suffix = f"-{hashlib.sha256(uid.encode()).hexdigest()[:5]}-{attempt}"
    return job_name[: MAX_OBJECT_NAME - len(suffix)].rstrip("-") + suffix
