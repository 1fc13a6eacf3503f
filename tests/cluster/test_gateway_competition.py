"""Two gangs want the aligned pairs of one node: one gets all of its own, the other knows why."""

import json

from gateway.core.vocabulary import JobState, PairRule, Reason
from gateway.schemas.views import AssignmentView, ExplainView
from tests.cluster.gateway_fixtures import WorldMaker
from tests.cluster.gateway_world import PREFIX, GatewayWorld, a_job
from tests.cluster.harness.nodes import NodeShape

SWITCH_OF = {
    **{("gpu", ordinal): switch for ordinal, switch in enumerate((0, 0, 1, 1))},
    **{("rdma", ordinal): switch for ordinal, switch in enumerate((0, 0, 2, 2))},
}
TWO_PAIRS = NodeShape(
    gpus=4,
    nics=4,
    annotations={
        f"{PREFIX}topology": json.dumps(
            [
                {
                    "kind": kind,
                    "ordinal": ordinal,
                    "switch": switch,
                    "numa": 0,
                    "name": f"{kind}-name-{ordinal}",
                    "uuid": f"GPU-{ordinal}" if kind == "gpu" else "",
                }
                for (kind, ordinal), switch in SWITCH_OF.items()
            ]
        )
    },
)
"""Four GPUs and four NICs, but only the first two of each share a PCIe switch."""


def test_a_gang_waits_for_aligned_pairs_and_starts_by_itself(
    make_world: WorldMaker, database_url: str
) -> None:
    world = make_world(database_url, shape=TWO_PAIRS)
    first = world.submit(a_job(world.site.namespace, "first"))
    world.until(first, JobState.RUNNING)
    assert_bound_as_planned(world, first)

    second = world.submit(a_job(world.site.namespace, "second"))
    explained = until_explained(world, second)
    assert explained.reason is Reason.NO_ALIGNED_DEVICES
    assert explained.causes[0].reason is Reason.NO_ALIGNED_DEVICES
    assert explained.causes[0].detail
    assert (explained.position, world.job(second).state) == (1, JobState.PENDING)
    assert world.attempts(second) == ()

    world.finish(first)
    world.until(second, JobState.RUNNING)

    assert world.job(first).state is JobState.SUCCEEDED
    assert world.live_pods(first) == [], "its pods ended before another gang got their devices"
    assert_bound_as_planned(world, second)
    world.finish(second)
    world.until(second, JobState.SUCCEEDED)
    world.assert_idle()


def until_explained(world: GatewayWorld, job_id: str) -> ExplainView:
    """Wait until a cycle has looked at the job."""
    world.until_true(
        lambda: world.explain(job_id).reason not in {None, Reason.NOT_REACHED}, "a reason to wait"
    )
    return world.explain(job_id)


def assert_bound_as_planned(world: GatewayWorld, job_id: str) -> None:
    """Each pod is where the assignment says, and knows its devices both ways."""
    kubelet, namespace = world.site.cluster.kubelet, world.site.namespace
    assignments = world.assignments(job_id)
    assert len(assignments) == 2
    for assignment, name in zip(assignments, world.pod_names(job_id), strict=True):
        pod = world.pod(job_id, assignment.rank)
        assert pod is not None
        gpus = ids(assignment, "gpu")
        nics = ids(assignment, "rdma")
        assert pod["spec"]["nodeName"] == assignment.node == world.site.nodes[0]
        annotations = pod["metadata"]["annotations"]
        assert annotations[f"{PREFIX}gpus"] == gpus
        assert annotations[f"{PREFIX}nics"] == nics
        environment = kubelet.environment(namespace, name)
        assert environment["TRAINING_GATEWAY_NODE"] == assignment.node
        assert environment["TRAINING_GATEWAY_GPUS"] == gpus
        assert environment["TRAINING_GATEWAY_NICS"] == nics
        assert environment["TRAINING_GATEWAY_RANK"] == environment["RANK"] == str(assignment.rank)
        assert_aligned(assignment)
    held = [(d.kind, d.ordinal) for each in assignments for d in each.devices]
    assert len(held) == len(set(held)) == 4


def ids(assignment: AssignmentView, kind: str) -> str:
    """Give the devices of a kind as a pod is told about them."""
    return ",".join(d.uuid or d.name for d in assignment.devices if d.kind == kind)


def assert_aligned(assignment: AssignmentView) -> None:
    """Each GPU has a NIC under its switch."""
    assert assignment.pair is PairRule.SWITCH
    switches = sorted(SWITCH_OF[d.kind.value, d.ordinal] for d in assignment.devices)
    assert switches == [0, 0]
