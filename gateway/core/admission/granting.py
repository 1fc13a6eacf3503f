"""What the admitted gangs get, in the form in which it is written down."""

from gateway.core.admission.deciding import Admitted, Decided
from gateway.core.admission.state import State
from gateway.core.admission.types import Admit, Charge, PodPlacement
from gateway.core.vocabulary import ReplicaType


def admits_of(state: State, decided: Decided) -> tuple[Admit, ...]:
    """Give every admission, in the order in which they were made."""
    return tuple(_admit(state, entry) for entry in decided.admitted)


def _admit(state: State, entry: Admitted) -> Admit:
    table = state.lines.table
    return Admit(
        job_id=int(table.job_id[entry.slot]),
        version=int(table.version[entry.slot]),
        queue=entry.queue,
        class_index=entry.class_id,
        placements=_placements(state, entry),
        charges=tuple(
            Charge(flavor=pair[0], resource=pair[1], amount=amount)
            for pair, amount in sorted(entry.fit.charges.items())
        ),
        flavors=tuple(sorted((name, each.name) for name, each in entry.fit.choice.items())),
    )


def _placements(state: State, entry: Admitted) -> tuple[PodPlacement, ...]:
    node_id = state.scene.fleet.node_id
    # Ranks follow this order, and rank 0 is where the others meet.
    # This order becomes the order of ranks, and the training-operator gives the Master rank 0.
    master_first = sorted(entry.request.pod_sets, key=lambda each: each.name != ReplicaType.MASTER)
    return tuple(
        PodPlacement(
            pod_set=pod_set.name,
            index=index,
            node_id=int(node_id[place.row]),
            gpu_mask=place.gpu_mask,
            nic_mask=place.nic_mask,
        )
        for pod_set in master_first
        for index, place in enumerate(entry.fit.places[pod_set.name])
    )
