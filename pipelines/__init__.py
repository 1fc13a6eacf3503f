"""Kubeflow Pipelines: a component that runs a training job through the gateway, and examples.

Sees `gateway.sdk` only, and that from inside the component, so that compiling a pipeline needs kfp
and nothing of the gateway.
"""

from pipelines.component import run_training_job
from pipelines.step import training_step

__all__ = ["run_training_job", "training_step"]
