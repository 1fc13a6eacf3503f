"""What a test or a replay does to the virtual cluster from outside: faults and shortcuts.

Nothing in here is part of the back end protocol, and the service never calls it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gateway.backends.simulated import life
from gateway.backends.simulated.ledger import Ledger
from gateway.backends.simulated.objects import (
    VirtualCluster,
    VirtualObject,
    VirtualReplica,
    key_of,
)
from gateway.backends.simulated.script import Script
from gateway.core.vocabulary import DeviceHealth
from gateway.errors import ClusterUnreachable, NotFound

FOREIGN_IDENTITY = "somebody else"


@dataclass(slots=True)
class Weather:
    """Faults of the connection; they end with the process."""

    is_unreachable: bool = False
    losing: dict[str, int] = field(default_factory=dict)
    """Verb to the number of answers still to be lost."""


class Controls:
    """The levers, mixed into the back end."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float]) -> None:
        """Share the back end's state and clock."""
        self._ledger = ledger
        self._clock = clock
        self._weather = Weather()

    def set_unreachable(self, is_unreachable: bool) -> None:  # noqa: FBT001 - one lever
        """Cut or mend the connection: every call raises ClusterUnreachable."""
        self._weather.is_unreachable = is_unreachable

    def lose_answers(self, verb: str, count: int = 1) -> None:
        """Let the next calls of a verb act and then raise ClusterUnreachable."""
        self._weather.losing[verb] = count

    def delete_behind_our_back(self, name: str, namespace: str = "default") -> None:
        """Delete an object as a stranger with kubectl would."""
        with self._ledger.changing() as cluster:
            # No weather and no lost answers here: the stranger's connection is not the gateway's.
            remove(cluster, self._pick(cluster, namespace, name), self._clock())

    def plant_foreign(self, name: str, namespace: str = "default") -> str:
        """Create somebody else's object of this name; gives its uid."""
        with self._ledger.changing() as cluster:
            # The one count of all objects, so that a foreign uid never equals one of ours.
            cluster.created += 1
            uid = f"foreign-{cluster.created}"
            cluster.objects[key_of(namespace, name)] = VirtualObject(
                namespace=namespace,
                name=name,
                uid=uid,
                identity=FOREIGN_IDENTITY,
                script=Script(),
                replicas=[],
            )
        return uid

    def finish_replica(self, name: str, rank: int, exit_code: int = 0, *, namespace: str) -> None:
        """Let one replica exit now, whatever its script says."""
        with self._ledger.changing() as cluster:
            found = self._pick(cluster, namespace, name)
            life.end(_replica(found, rank), exit_code, self._clock())
            # As the operator would by its watch: the end does not wait for our next look.
            life.decide(found, self._clock())

    def recreate_pod(self, name: str, rank: int, *, namespace: str = "default") -> None:
        """Replace one pod by a new, gated one, as the operator does after a pod was deleted."""
        with self._ledger.changing() as cluster:
            found = self._pick(cluster, namespace, name)
            old = _replica(found, rank)
            # The uid that observers see holds the generation, as a new pod has a new UID.
            found.replicas[found.replicas.index(old)] = VirtualReplica(
                pod_set=old.pod_set,
                index=old.index,
                rank=old.rank,
                generation=old.generation + 1,
                appears_at=self._clock(),
            )

    def fail_node(self, node: str) -> None:
        """Lose a node: it turns unhealthy and what ran there vanishes without a result."""
        with self._ledger.changing() as cluster:
            cluster.node_health[node] = DeviceHealth.UNHEALTHY.value
            # Brought up to now first: who ended before the node was lost keeps the result.
            for found in cluster.objects.values():
                life.settle(found, self._clock())
                _lose_node(found, node, self._clock())

    def set_node_health(self, node: str, health: DeviceHealth) -> None:
        """Let inventory report a node like this; running replicas are left alone."""
        with self._ledger.changing() as cluster:
            # Healthy is the absence of an entry, so that a fleet of thousands stores none.
            cluster.node_health.pop(node, None)
            if health is not DeviceHealth.HEALTHY:
                cluster.node_health[node] = health.value

    def environments(self, name: str, namespace: str = "default") -> Mapping[int, dict[str, str]]:
        """Give, by rank, the plan that each opened replica sees."""
        with self._ledger.reading() as cluster:
            found = self._pick(cluster, namespace, name)
            return {replica.rank: dict(replica.environment) for replica in found.replicas}

    def uid_of(self, name: str, namespace: str = "default") -> str | None:
        """Give the uid of whatever object has this name."""
        with self._ledger.reading() as cluster:
            found = cluster.objects.get(key_of(namespace, name))
            return found.uid if found else None

    def _pick(self, cluster: VirtualCluster, namespace: str, name: str) -> VirtualObject:
        found = cluster.objects.get(key_of(namespace, name))
        if found is None:
            raise NotFound(f"no virtual object {namespace}/{name}", value=name)
        life.settle(found, self._clock())
        return found

    def _check_weather(self) -> None:
        if self._weather.is_unreachable:
            raise ClusterUnreachable("the virtual cluster is cut off", hint="try again later")

    def _maybe_lose(self, verb: str) -> None:
        left = self._weather.losing.get(verb, 0)
        if left:
            # Counted down before raising, or one lost answer would be lost for ever.
            self._weather.losing[verb] = left - 1
            raise ClusterUnreachable(f"the answer to {verb} was lost", hint="try again later")


def remove(cluster: VirtualCluster, found: VirtualObject, now: float) -> None:
    """Delete an object; its pods linger as the script says."""
    cluster.objects.pop(key_of(found.namespace, found.name), None)
    found.deleted_at = now
    life.terminate(found, now)
    # By uid: the name may belong to the next object while these pods still terminate.
    if life.lingers(found, now):
        cluster.leaving[found.uid] = found


def _lose_node(found: VirtualObject, node: str, now: float) -> None:
    hit = [replica for replica in found.replicas if replica.node == node]
    if hit and not found.outcome:
        life.lose(found, hit, f"node {node} was lost")
        life.decide(found, now)


def _replica(found: VirtualObject, rank: int) -> VirtualReplica:
    for replica in found.replicas:
        if replica.rank == rank:
            return replica
    raise NotFound(f"object {found.name} has no rank {rank}", value=rank)
