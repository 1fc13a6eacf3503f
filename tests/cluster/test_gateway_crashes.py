"""Every crash point on the real control plane: one object, devices held once or free, no help."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.core.vocabulary import JobState
from tests.acceptance.crash.manifests import a_gang, write_manifests
from tests.acceptance.crash.sweep import CHILDREN, SWEEP, Deployment, survive
from tests.cluster.gateway_fixtures import SiteMaker
from tests.cluster.harness.scripts import PodScript
from tests.cluster.job_counting import JobCount
from tests.cluster.kubeflow_world import ACCOUNT
from tests.cluster.pytorch_jobs import pods_path

CHILDREN.set_forkserver_preload(["tests.acceptance.crash.runner", "gateway.backends.kubeflow"])


@pytest.mark.parametrize(("point", "end"), SWEEP)
def test_a_killed_gateway_goes_on_with_its_one_object(
    make_site: SiteMaker, tmp_path: Path, point: str, end: JobState
) -> None:
    site = make_site()
    site.cluster.kubelet.script(PodScript(job="short.*", run_seconds=0.5))

    def gang(name: str) -> dict[str, Any]:
        return {**a_gang(), "metadata": {"name": name, "namespace": site.namespace}}

    deployment = Deployment(
        url=f"sqlite:///{tmp_path / 'gateway.db'}",
        environment={
            "STATE_DIR": str(tmp_path),
            "BACKEND": "kubeflow",
            "KUBECONFIG": str(site.kubeconfig),
            "NAMESPACES": json.dumps([site.namespace]),
            "POD_PRIORITY_CLASS": ACCOUNT,
        },
        manifests=write_manifests(tmp_path, short=gang("short"), long=gang("long")),
        count_created=JobCount(site.cluster.rest, site.namespace),
    )

    survive(deployment, point, end)

    pods = site.cluster.rest.items(pods_path(site.namespace))
    assert {pod["status"]["phase"] for pod in pods} <= {"Succeeded", "Failed"}
