"""A cluster that loses pods, refuses, is away or has strangers in it confuses no gateway."""

from functools import partial

from gateway.core.vocabulary import EndReason, JobState, Reason
from gateway.service.grants import object_name
from gateway.service.queues import pause_queue, resume_queue
from tests.cluster.gateway_world import ADMIN, PREFIX, GatewayWorld, a_job
from tests.cluster.harness.rest import JsonObject
from tests.cluster.kubeflow_world import ACCOUNT
from tests.cluster.pytorch_jobs import jobs_path, pods_path, pytorch_job


def test_a_recreated_worker_gets_its_old_place_and_devices(world: GatewayWorld) -> None:
    job = world.submit(a_job(world.site.namespace, workers=2, restart_policy="OnFailure"))
    world.until(job, JobState.RUNNING)
    name = world.pod_names(job)[1]
    old = world.site.cluster.rest.get(pods_path(world.site.namespace, name))
    environment = plan_in(world, old)
    held = world.held()

    world.site.cluster.rest.delete(pods_path(world.site.namespace, name))
    world.until_true(lambda: is_running_anew(world.pod(job, 1), old), "the worker to run again")

    new = world.site.cluster.rest.get(pods_path(world.site.namespace, name))
    assert new["spec"]["nodeName"] == old["spec"]["nodeName"]
    assert plan_of(new) == plan_of(old)
    assert plan_in(world, new) == environment
    assert len(environment) == 7
    assert (world.job(job).state, world.job(job).attempt) == (JobState.RUNNING, 1)
    assert world.held() == held
    world.finish(job)
    world.until(job, JobState.SUCCEEDED)
    world.assert_idle()


def test_more_recreated_pods_than_allowed_fail_the_job(world: GatewayWorld) -> None:
    job = world.submit(a_job(world.site.namespace, restart_policy="OnFailure"))
    world.until(job, JobState.RUNNING)
    name = world.pod_names(job)[1]
    for _ in range(world.gateway.settings.max_pod_restarts + 1):
        old = world.site.cluster.rest.get(pods_path(world.site.namespace, name))
        world.site.cluster.rest.delete(pods_path(world.site.namespace, name))
        world.until_true(
            partial(is_over_or_anew, world, job, old), "the worker to run again or the job to end"
        )
    ended = world.until(job, JobState.FAILED)
    assert ended.end_reason is EndReason.TOO_MANY_RESTARTS
    world.assert_idle()


def test_a_gateway_without_the_right_to_create_fails_the_job_and_names_the_verb(
    world: GatewayWorld,
) -> None:
    world.site.cluster.rest.delete(world.site.role_binding)
    world.until_true(lambda: not may_create(world), "the API server to notice")
    job = world.submit(a_job(world.site.namespace))
    ended = world.until(job, JobState.FAILED)
    assert ended.end_reason is EndReason.REJECTED_BY_CLUSTER
    assert "create pytorchjobs" in ended.message
    assert world.site.namespace in ended.message
    assert world.object(job) is None
    world.assert_idle()


def test_jobs_of_an_unreachable_cluster_wait_and_go_on_by_themselves(world: GatewayWorld) -> None:
    running = world.submit(a_job(world.site.namespace, "running"))
    world.until(running, JobState.RUNNING)
    world.site.cluster.plane.stop_api_server()
    try:
        late = world.submit(a_job(world.site.namespace, "late"))
        world.until_true(lambda: world.job(late).reason is Reason.CLUSTER_UNREACHABLE, "the reason")
        assert world.job(late).state is JobState.RESERVED
        assert world.explain(late).reason is Reason.CLUSTER_UNREACHABLE
        assert world.job(late).message
        assert world.job(running).state is JobState.RUNNING
        assert world.held() == 8, "what cannot be seen stays held"
    finally:
        world.site.cluster.plane.start_api_server()
    started = world.until(late, JobState.RUNNING)
    assert (started.reason, started.message, started.attempt) == (None, "", 1)
    for job in (running, late):
        world.finish(job)
        world.until(job, JobState.SUCCEEDED)
    world.assert_idle()


def test_a_strangers_object_of_the_same_name_is_left_alone(world: GatewayWorld) -> None:
    pause_queue(world.gateway, ADMIN, "default")
    job = world.submit(a_job(world.site.namespace))
    stranger = pytorch_job(object_name("train", job, 1), workers=1)
    planted = world.site.cluster.rest.create(jobs_path(world.site.namespace), stranger)
    resume_queue(world.gateway, ADMIN, "default")

    ended = world.until(job, JobState.FAILED)

    assert ended.end_reason is EndReason.FOREIGN_OBJECT
    assert planted["metadata"]["name"] in ended.message
    left = world.object(job)
    assert left is not None
    assert left["metadata"]["uid"] == planted["metadata"]["uid"]
    assert left["spec"] == planted["spec"]
    assert "deletionTimestamp" not in left["metadata"]
    world.assert_idle()


def may_create(world: GatewayWorld) -> bool:
    """Ask the API server whether the shipped ServiceAccount may create jobs here."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{ACCOUNT}:{ACCOUNT}",
            "resourceAttributes": {
                "namespace": world.site.namespace,
                "verb": "create",
                "group": "kubeflow.org",
                "resource": "pytorchjobs",
            },
        },
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return bool(world.site.cluster.rest.create(path, review)["status"]["allowed"])


def is_running_anew(pod: JsonObject | None, old: JsonObject) -> bool:
    """Whether another pod of the name runs."""
    if pod is None or pod["metadata"]["uid"] == old["metadata"]["uid"]:
        return False
    return bool(pod["status"]["phase"] == "Running")


def is_over_or_anew(world: GatewayWorld, job: str, old: JsonObject) -> bool:
    """Whether the first worker was replaced, or nobody would replace it any more."""
    return world.job(job).state is not JobState.RUNNING or is_running_anew(world.pod(job, 1), old)


def plan_of(pod: JsonObject) -> dict[str, str]:
    """Give what a pod's annotations say of its reservation."""
    annotations: dict[str, str] = pod["metadata"]["annotations"]
    return {key: value for key, value in annotations.items() if key.startswith(PREFIX)}


def plan_in(world: GatewayWorld, pod: JsonObject) -> dict[str, str]:
    """Give what the pod's container was told of its reservation."""
    environment = world.site.cluster.kubelet.environment_of(pod["metadata"]["uid"])
    return {key: value for key, value in environment.items() if key.startswith("TRAINING_GATEWAY_")}
