"""Trains the digits example through the gateway, as a pipeline of one step.

Compile it: `python -m pipelines.examples.digits digits-pipeline.yaml`.
"""

import sys

from kfp import compiler, dsl

from pipelines.step import training_step

MANIFEST = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: digits-pipeline
  namespace: default
  annotations:
    training-gateway.io/pair: switch
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: pytorch
              image: training-gateway/examples:0.1.0
              command: [python, -m, gateway.examples.digits.train]
              args: ["--epochs", "3"]
              resources:
                limits: {cpu: 1, memory: 1Gi, nvidia.com/gpu: 1, rdma/hca: 1}
    Worker:
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: pytorch
              image: training-gateway/examples:0.1.0
              command: [python, -m, gateway.examples.digits.train]
              args: ["--epochs", "3"]
              resources:
                limits: {cpu: 1, memory: 1Gi, nvidia.com/gpu: 1, rdma/hca: 1}
"""


# A training is no step's own process, so the pipeline's pods need no GPU of their own.
@dsl.pipeline(name="digits", description="A data-parallel training through the gateway.")
def digits_pipeline(gateway_url: str = "", queue: str = "") -> str:
    """Train once and give the job's id.

    The manifest is a constant of the step: kfp cannot write a default of several lines.
    """
    step = training_step(MANIFEST, gateway_url=gateway_url, queue=queue)
    return step.outputs["job_id"]


def compile_to(path: str) -> None:
    """Write the pipeline's YAML."""
    compiler.Compiler().compile(digits_pipeline, path)


if __name__ == "__main__":
    compile_to(sys.argv[1] if len(sys.argv) > 1 else "digits-pipeline.yaml")
