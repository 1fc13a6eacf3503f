"""The whole: control plane, training-operator, fake kubelet, nodes and namespaces.

Tests get it from the fixtures of `tests/cluster/conftest.py`; `python -m tests.cluster.harness up`
runs it by hand.
"""

import secrets
import tempfile
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.cluster.harness.binaries import find_binaries
from tests.cluster.harness.control_plane import ControlPlane, Flags
from tests.cluster.harness.fake_kubelet import FakeKubelet, start_kubelet
from tests.cluster.harness.nodes import NodeShape, is_usable, make_node
from tests.cluster.harness.rest import Rest
from tests.cluster.harness.training_operator import TrainingOperator, core
from tests.cluster.harness.waiting import wait_until


class Cluster:
    """Everything a PyTorchJob needs to live and end."""

    def __init__(self, folder: Path | None = None, flags: Flags | None = None) -> None:
        """Prepare a cluster; programs missing so far are built here.

        Args:
            folder: where all data lie; removed at the end. None makes one.
            flags: further flags of the control plane.
        """
        where = folder or Path(tempfile.mkdtemp(prefix="training-gateway-cluster-"))
        self.plane = ControlPlane(find_binaries(), where, flags or Flags())
        self.operator = TrainingOperator(self.plane)
        self._kubelet: FakeKubelet | None = None

    @property
    def kubelet(self) -> FakeKubelet:
        """Give the kubelet of all nodes."""
        if self._kubelet is None:
            raise RuntimeError("the cluster is not started")
        return self._kubelet

    @property
    def rest(self) -> Rest:
        """Give a client with all rights."""
        return self.plane.rest

    def start(self) -> None:
        """Start everything, about ten seconds; ends what it started when one part fails."""
        try:
            self.plane.start()
            token = self.plane.tokens["fake-kubelet"]
            self._kubelet = start_kubelet(self.plane.url, token, self.plane.certificates)
            self.operator.start()
            self.plane.dependents.append(self.operator.restart)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End kubelet, operator, control plane, in this order."""
        if self._kubelet is not None:
            self._kubelet.stop()
            self._kubelet = None
        self.operator.stop()
        self.plane.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def add_nodes(self, *names: str, shape: NodeShape | None = None) -> None:
        """Create nodes and wait until the scheduler may use them."""
        for name in names:
            make_node(self.rest, name, shape)
        for name in names:
            wait_until(
                partial(self._is_usable, name), f"node {name} to be Ready and without taints"
            )

    def _is_usable(self, name: str) -> bool:
        return is_usable(self.rest.get(f"/api/v1/nodes/{name}"))

    def remove_nodes(self, *names: str) -> None:
        """Delete nodes; pods on them are the test's business."""
        for name in names:
            self.rest.delete(f"/api/v1/nodes/{name}")

    def add_namespace(self, prefix: str = "team") -> str:
        """Create a namespace of a new name and wait until pods can be created in it."""
        name = f"{prefix}-{secrets.token_hex(4)}"
        self.rest.create("/api/v1/namespaces", core("Namespace", name))
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        what = f"the default account of namespace {name}"
        wait_until(lambda: self.rest.find(account), what, timeout_seconds=90.0)
        return name

    def remove_namespace(self, name: str) -> None:
        """Delete a namespace and wait until its pods are gone; the rest goes in its own time."""
        pods = f"/api/v1/namespaces/{name}/pods"
        # The namespace controller alone would look again only after some seconds.
        self.rest.delete(f"/apis/kubeflow.org/v1/namespaces/{name}/pytorchjobs")
        self.rest.delete(pods)
        self.rest.delete(f"/api/v1/namespaces/{name}")
        wait_until(lambda: not self.rest.items(pods), f"the pods of namespace {name} to go")
