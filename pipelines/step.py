"""What a pipeline author calls: the component with its identity wired and caching off."""

from kfp import dsl

from pipelines.component import run_training_job


def training_step(  # noqa: PLR0913 - the step's settings are its interface
    manifest: str,
    *,
    queue: str = "",
    priority: int = 0,
    gateway_url: str = "",
    timeout_seconds: float = 0.0,
    retries: int = 0,
) -> dsl.PipelineTask:
    """Add a training job to a pipeline; gives the task, whose outputs are the job's figures.

    Caching is off, because a cached step would train nothing. `retries` are the step's: a retry
    after a lost pod attaches to the same job, a retry after a failed training trains again.
    """
    task = run_training_job(
        manifest=manifest,
        # Each placeholder alone: the server resolves one only where it is the whole value.
        run_id=dsl.PIPELINE_JOB_ID_PLACEHOLDER,
        task_id=dsl.PIPELINE_TASK_ID_PLACEHOLDER,
        task_name=dsl.PIPELINE_TASK_NAME_PLACEHOLDER,
        queue=queue,
        priority=priority,
        gateway_url=gateway_url,
        timeout_seconds=timeout_seconds,
    )
    task.set_caching_options(enable_caching=False)
    # It only waits and prints: without a request, a namespace's quota may refuse the pod.
    task.set_cpu_request("100m").set_memory_request("256Mi")
    if retries:
        task.set_retry(num_retries=retries)
    return task
