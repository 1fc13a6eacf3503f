"""What others do to nodes keeps gangs waiting, with the reason, and no longer than needed."""

from gateway.core.vocabulary import DeviceHealth, JobState, Reason
from gateway.schemas.views import NodeView
from gateway.service.devices import get_node
from tests.cluster.gateway_world import ADMIN, GatewayWorld, a_job
from tests.cluster.harness.rest import JsonObject
from tests.cluster.pytorch_jobs import pods_path


def test_a_cordoned_node_takes_no_gang_until_it_is_open_again(world: GatewayWorld) -> None:
    [node] = world.site.nodes
    path = f"/api/v1/nodes/{node}"
    world.site.cluster.rest.merge_patch(path, {"spec": {"unschedulable": True}})
    world.until_true(lambda: seen(world).health is DeviceHealth.CORDONED, "the cordon to be seen")

    job = world.submit(a_job(world.site.namespace))
    waits_for(world, job, Reason.NODES_UNAVAILABLE)

    world.site.cluster.rest.merge_patch(path, {"spec": {"unschedulable": None}})
    world.until(job, JobState.RUNNING)
    world.finish(job)
    world.until(job, JobState.SUCCEEDED)
    world.assert_idle()


def test_gpus_of_a_node_that_a_stranger_uses_are_given_to_nobody(world: GatewayWorld) -> None:
    [node] = world.site.nodes
    stranger = pods_path(world.site.namespace, "stranger")
    world.site.cluster.rest.create(pods_path(world.site.namespace), a_pod_with_a_gpu(node))
    world.until_true(lambda: seen(world).gpus_free == 0, "the foreign use to be seen")

    job = world.submit(a_job(world.site.namespace))
    world.until_true(lambda: world.job(job).reason not in {None, Reason.NOT_REACHED}, "a reason")
    assert (world.job(job).state, world.held()) == (JobState.PENDING, 0)

    world.site.cluster.rest.delete(stranger)
    world.until(job, JobState.RUNNING)
    world.finish(job)
    world.until(job, JobState.SUCCEEDED)
    world.assert_idle()


def waits_for(world: GatewayWorld, job: str, reason: Reason) -> None:
    """Wait until the job says that it waits for this reason, and for no other."""
    world.until_true(lambda: world.job(job).reason is reason, f"the reason {reason}")
    assert world.job(job).state is JobState.PENDING
    assert world.explain(job).reason is reason


def seen(world: GatewayWorld) -> NodeView:
    """Give the site's one node as the gateway shows it."""
    node: NodeView = get_node(world.gateway, ADMIN, world.site.nodes[0])
    return node


def a_pod_with_a_gpu(node: str) -> JsonObject:
    """Give a pod of somebody else's that went around every queue."""
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    container = {"name": "main", "image": "example.invalid/any:1", "resources": limits}
    spec = {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 1}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stranger"}, "spec": spec}
