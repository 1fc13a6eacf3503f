"""Which programs the control plane consists of, in which versions, from which Go modules.

It only names them; finding and building them is the business of `binaries.py` and `go_build.py`.
"""

import os
from dataclasses import dataclass
from pathlib import Path

BUILD_FOLDER = Path(__file__).resolve().parent.parent / "build"
COMMITTED_KUBERNETES = "1.37.2"
ETCD = "3.7.3"
TRAINING_OPERATOR = "1.9.4"
OPERATOR_MANIFESTS = (
    "crds/kubeflow.org_pytorchjobs.yaml",
    "webhook/manifests.yaml",
    "rbac/role.yaml",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """Programs that come from one Go module."""

    name: str
    version: str
    module: str
    programs: tuple[tuple[str, str], ...]
    """Name of the binary and its main package."""
    manifests: tuple[str, ...] = ()
    """Files of the module's manifests/base folder that are kept beside the binaries."""
    about_seconds: int = 30
    """How long a cold build takes on two cores, to tell the person who waits."""

    @property
    def label(self) -> str:
        """Give the name of the cache folder."""
        return f"{self.name}-{self.version}"

    @property
    def files(self) -> tuple[str, ...]:
        """Give every file a complete folder has."""
        return (*(binary for binary, _ in self.programs), *self.manifests)


def kubernetes_version() -> str:
    """Give the wanted version of Kubernetes, without a leading v."""
    return os.environ.get("TRAINING_GATEWAY_TEST_KUBERNETES", COMMITTED_KUBERNETES).lstrip("v")


def etcd() -> Tool:
    """Give the store below the API server."""
    module = "go.etcd.io/etcd/server/v3"
    return Tool(name="etcd", version=ETCD, module=module, programs=(("etcd", module),))


def kubernetes() -> Tool:
    """Give the three programs of the control plane."""
    names = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    return Tool(
        name="kubernetes",
        version=kubernetes_version(),
        module="k8s.io/kubernetes",
        programs=tuple((name, f"k8s.io/kubernetes/cmd/{name}") for name in names),
        about_seconds=400,
    )


def training_operator() -> Tool:
    """Give the operator that turns a PyTorchJob into pods and services."""
    module = "github.com/kubeflow/training-operator"
    return Tool(
        name="training-operator",
        version=TRAINING_OPERATOR,
        module=module,
        programs=(("training-operator", f"{module}/cmd/training-operator.v1"),),
        manifests=OPERATOR_MANIFESTS,
        about_seconds=80,
    )
