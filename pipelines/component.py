"""The component: submits a PyTorchJob, waits, streams rank 0's lines, fails when training fails.

A lightweight component: kfp copies this function's source into the pipeline, so it imports what it
needs inside itself. The image must hold the SDK; `deploy/image` has the recipe.
"""

import os
from typing import NamedTuple

from kfp import dsl

DEFAULT_IMAGE = "training-gateway/pipelines:0.1.0-python3.11"
IMAGE_VARIABLE = "TRAINING_GATEWAY_PIPELINES_IMAGE"
BASE_IMAGE = os.environ.get(IMAGE_VARIABLE, DEFAULT_IMAGE)
"""Image of the step; set the variable when compiling to use a registry of your own."""


@dsl.component(base_image=BASE_IMAGE, install_kfp_package=False)
def run_training_job(  # noqa: PLR0913, PLR0917 - a component's inputs are its interface
    manifest: str,
    run_id: str,
    task_id: str,
    task_name: str,
    queue: str = "",
    priority: int = 0,
    gateway_url: str = "",
    timeout_seconds: float = 0.0,
    cancel_on_terminate: bool = True,  # noqa: FBT001, FBT002 - kfp passes inputs by name
) -> NamedTuple(
    "Outputs", job_id=str, state=str, attempts=int, queue_seconds=float, run_seconds=float
):
    """Run one PyTorchJob through the training gateway.

    A step that is run again finds its own job by the key made of run, task id and task name, and
    goes on waiting for it. Only when that job failed or was cancelled does a retry submit again.

    Args:
        manifest: the PyTorchJob as YAML or JSON text.
        run_id: id of the pipeline run.
        task_id: id of the task within the run.
        task_name: name of the task.
        queue: queue to submit to; empty takes the namespace's default.
        priority: order inside the queue; higher runs sooner.
        gateway_url: gateway to talk to; empty takes the environment's.
        timeout_seconds: longest wait for the end; 0 waits for ever.
        cancel_on_terminate: cancel the job when the pipeline run is terminated.
    """
    import os
    import signal
    import sys
    from typing import Any, NamedTuple

    from gateway.sdk import Client

    client = Client(url=gateway_url or None)
    # Only what was asked for, so that the job is the same as by any other way in.
    asked = {"queue": queue, "priority": priority}
    wishes: dict[str, Any] = {name: value for name, value in asked.items() if value}
    # All three: kfp gives every task of a DAG that DAG's id, and names repeat between DAGs.
    key = f"kfp:{run_id}:{task_id}:{task_name}"
    job = client.submit(manifest, idempotency_key=key, **wishes)
    # kfp retries alike after a lost pod and after a failed training. The key finds the same job for
    # the first; the second must train again, once for each retry.
    if job.refresh().state in {"failed", "cancelled"}:
        retry = os.environ.get("KFP_RETRY_INDEX", "0")
        job = client.submit(manifest, idempotency_key=f"{key}:{retry}", **wishes)

    def stop(_number: int, _frame: object) -> None:
        if cancel_on_terminate:
            job.cancel()
        sys.exit(143)

    signal.signal(signal.SIGTERM, stop)
    print(f"job {job.id} in queue {job.view.queue}", flush=True)
    limit = timeout_seconds or None
    # The wait first, so that a job in the queue is not asked for lines that it cannot have.
    job.wait(status={"running"}, timeout=limit)
    for line in job.logs(rank=0, follow=True):
        print(f"[rank 0] {line}", flush=True)
    view = job.wait(timeout=limit).view

    outputs = NamedTuple(
        "Outputs", job_id=str, state=str, attempts=int, queue_seconds=float, run_seconds=float
    )
    ended_at = view.ended_at or view.submitted_at
    started_at = view.started_at or ended_at
    return outputs(
        job_id=job.id,
        state=str(view.state),
        attempts=view.attempt,
        queue_seconds=(started_at - view.submitted_at).total_seconds(),
        run_seconds=(ended_at - started_at).total_seconds(),
    )
