"""Every manifest of the collection is read as its table says, in every form."""

import json
from collections import Counter
from dataclasses import replace

import pytest
import yaml
from kubeflow.training import (
    KubeflowOrgV1PyTorchJob,
    KubeflowOrgV1PyTorchJobSpec,
    KubeflowOrgV1ReplicaSpec,
    KubeflowOrgV1RunPolicy,
)
from kubernetes.client import (
    V1Container,
    V1EnvVar,
    V1ObjectMeta,
    V1PodSpec,
    V1PodTemplateSpec,
    V1ResourceRequirements,
)

from gateway.errors import GatewayError, InvalidInput, UnsafeTemplate
from gateway.manifests import ReadOptions, digest, read_documents, read_job, read_jobs
from gateway.schemas.job_spec import JobSpec
from tests.manifests import GoodManifest, good_manifests

every_good = pytest.mark.parametrize("good", good_manifests(), ids=lambda good: good.name)


def row_of(spec: JobSpec) -> dict[str, object]:
    total: Counter[str] = Counter()
    for pod_set in spec.pod_sets:
        for name, amount in pod_set.per_pod.items():
            total[name] += amount * pod_set.count
    return {
        "name": spec.name,
        "namespace": spec.namespace,
        "queue": spec.queue,
        "priority": spec.priority,
        "hold": spec.hold,
        "pods": sum(pod_set.count for pod_set in spec.pod_sets),
        **total,
    }


def digests_of(good: GoodManifest, source: object) -> list[str]:
    return [digest(spec) for spec in read_jobs(source, good.options)]


@every_good
def test_a_manifest_is_read_as_its_table_says(good: GoodManifest) -> None:
    defaults = {"namespace": "default", "queue": "", "priority": 0, "hold": False}
    flags = {"unsafe", "kueue"}
    expected = [
        {**defaults, **{key: value for key, value in job.items() if key not in flags}}
        for job in good.jobs
    ]
    assert [row_of(spec) for spec in read_jobs(good.path, good.options)] == expected


def test_the_collection_is_complete() -> None:
    assert len(good_manifests()) >= 25
    folder = good_manifests()[0].path.parent
    assert {each.path for each in good_manifests()} == set(folder.glob("[0-9]*"))
    for each in good_manifests():
        text = each.path.read_bytes().removeprefix(b"\xef\xbb\xbf")
        assert text.startswith(b"# ") or each.path.suffix == ".json"


@every_good
def test_every_form_of_a_manifest_gives_the_same_digest(good: GoodManifest) -> None:
    expected = digests_of(good, good.path)
    documents = read_documents(good.path)
    assert digests_of(good, good.path.read_bytes()) == expected
    assert digests_of(good, good.path.read_text("utf-8")) == expected
    assert digests_of(good, documents) == expected
    assert digests_of(good, json.dumps(documents)) == expected
    assert digests_of(good, yaml.safe_dump_all(documents).encode()) == expected
    assert digests_of(good, {"kind": "List", "apiVersion": "v1", "items": documents}) == expected


@every_good
def test_reading_what_was_read_changes_nothing(good: GoodManifest) -> None:
    for spec in read_jobs(good.path, good.options):
        again = read_job(spec.manifest, replace(good.options, kueue_label="refuse"))
        assert again == spec
        assert JobSpec.model_validate_json(spec.model_dump_json()) == spec


@every_good
def test_reading_does_not_change_what_it_reads(good: GoodManifest) -> None:
    for document in read_documents(good.path):
        before = json.dumps(document)
        read_job(document, good.options)
        assert json.dumps(document) == before


@every_good
def test_unsafe_templates_and_kueue_labels_need_their_setting(good: GoodManifest) -> None:
    if good.is_unsafe:
        with pytest.raises(UnsafeTemplate):
            read_jobs(good.path)
    elif good.is_kueue:
        with pytest.raises(InvalidInput, match="belongs to Kueue"):
            read_jobs(good.path)
    else:
        assert len(read_jobs(good.path)) == len(good.jobs)


def a_model() -> KubeflowOrgV1PyTorchJob:
    container = V1Container(
        name="pytorch",
        image="registry.example/train:1",
        env=[V1EnvVar(name="SEED", value="1")],
        resources=V1ResourceRequirements(limits={"nvidia.com/gpu": "2"}),
    )
    template = V1PodTemplateSpec(
        metadata=V1ObjectMeta(labels={"app": "model"}),
        spec=V1PodSpec(containers=[container], node_selector={"pool": "gpu"}),
    )
    replica = KubeflowOrgV1ReplicaSpec(replicas=1, restart_policy="OnFailure", template=template)
    return KubeflowOrgV1PyTorchJob(
        api_version="kubeflow.org/v1",
        kind="PyTorchJob",
        metadata=V1ObjectMeta(name="model", namespace="research"),
        spec=KubeflowOrgV1PyTorchJobSpec(
            run_policy=KubeflowOrgV1RunPolicy(clean_pod_policy="None"),
            pytorch_replica_specs={"Master": replica},
        ),
    )


def test_a_kubeflow_model_object_gives_the_same_digest_as_its_yaml() -> None:
    text = """
    apiVersion: kubeflow.org/v1
    kind: PyTorchJob
    metadata: {name: model, namespace: research}
    spec:
      runPolicy: {cleanPodPolicy: None}
      pytorchReplicaSpecs:
        Master:
          replicas: 1
          restartPolicy: OnFailure
          template:
            metadata: {labels: {app: model}}
            spec:
              nodeSelector: {pool: gpu}
              containers:
                - name: pytorch
                  image: registry.example/train:1
                  env: [{name: SEED, value: "1"}]
                  resources: {limits: {nvidia.com/gpu: "2"}}
    """
    (of_model,), (of_yaml,) = read_jobs(a_model()), read_jobs(text)
    assert of_model == of_yaml
    assert digest(of_model) == digest(of_yaml)


def test_unknown_fields_of_the_user_are_kept() -> None:
    good = next(each for each in good_manifests() if each.name == "34-every-annotation.yaml")
    (spec,) = read_jobs(good.path)
    pod = spec.manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    assert pod["aFieldOfTomorrow"] == {"kept": True}


def test_several_jobs_say_which_of_them_is_wrong() -> None:
    source = "name: fine\nimage: a\n---\nname: wrong\nimgae: a\n"
    with pytest.raises(GatewayError, match="document 2 of 2: /imgae"):
        read_jobs(source, ReadOptions())
