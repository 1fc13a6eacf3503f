"""Runs the real training-operator beside a control plane, with its own role and real webhook.

The operator works as its own ServiceAccount with the ClusterRole its authors ship.
"""

import base64
import os
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.cluster.harness.control_plane import ControlPlane, answers
from tests.cluster.harness.processes import Program, free_port
from tests.cluster.harness.rest import JsonObject, Refused, load_documents
from tests.cluster.harness.waiting import wait_until

NAMESPACE = "kubeflow"
ACCOUNT = "training-operator"
SECRET = "training-operator-webhook-cert"
WEBHOOKS = "validator.training-operator.kubeflow.org"
CRD_NAME = "pytorchjobs.kubeflow.org"
SERVING = Path("k8s-webhook-server") / "serving-certs"
WORKING = "Starting workers"
# The certificate rotator looks for a file in this fixed folder, whatever TMPDIR says.
FIXED_CERTIFICATE = Path("/tmp") / SERVING / "tls.crt"  # noqa: S108 - chosen by the operator


@dataclass(slots=True)
class TrainingOperator:
    """The operator as a child process; PyTorchJobs only."""

    plane: ControlPlane
    _program: Program | None = field(init=False, default=None)
    _webhook_port: int = field(init=False, default=0)

    def start(self) -> None:
        """Install CRD, role, Secret and webhook, start the operator, wait until it is ready.

        Raises:
            ProgramFailed: it ended or did not get ready.
        """
        self._webhook_port = free_port()
        self.install_crd()
        self._install_account()
        self._install_certificates()
        self._register_webhook()
        self._launch()

    def stop(self) -> None:
        """End the operator; its objects stay."""
        if self._program:
            self._program.stop()

    def restart(self) -> None:
        """Start it anew if it runs: after an outage it would look again only after a while."""
        if self._program and self._program.child.poll() is None:
            self.stop()
            self._launch()

    def _launch(self) -> None:
        token_file = self.plane.folder / "operator.yaml"
        self.plane.kubeconfig_for_account(NAMESPACE, ACCOUNT, token_file)
        probe = f"127.0.0.1:{free_port()}"
        command = [
            str(self.plane.binaries.training_operator),
            "--enable-scheme=pytorchjob",
            "--metrics-bind-address=0",
            f"--health-probe-bind-address={probe}",
            f"--webhook-server-port={self._webhook_port}",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
        ]
        environment = {
            **os.environ,
            "KUBECONFIG": str(token_file),
            "MY_POD_NAMESPACE": NAMESPACE,
            "TMPDIR": str(self._temporary),
        }
        self._program = self.plane.programs.start("training-operator", command, environment)
        ready_url = f"http://{probe}/readyz"
        self._program.wait_ready(partial(answers, ready_url, self.plane.ca_path))
        # Ready means the webhook answers; the controller may still be filling its caches.
        log = self._program.log
        self._program.wait_ready(lambda: WORKING in log.read_text(errors="replace"))

    @property
    def _temporary(self) -> Path:
        return self.plane.folder / "operator-tmp"

    def install_crd(self) -> None:
        """Let the API server serve PyTorchJobs."""
        manifest = self.plane.binaries.operator_manifest("crds/kubeflow.org_pytorchjobs.yaml")
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{CRD_NAME}"
        self.plane.rest.apply_text(path, manifest.read_text())
        # An operator that does not find its kind at once looks again only after ten seconds.
        find = partial(self.plane.rest.find, "/apis/kubeflow.org/v1/pytorchjobs")
        wait_until(find, "the API server to serve PyTorchJobs", swallow=(Refused,))

    def _install_account(self) -> None:
        rest, rbac = self.plane.rest, "/apis/rbac.authorization.k8s.io/v1"
        rest.apply(f"/api/v1/namespaces/{NAMESPACE}", core("Namespace", NAMESPACE))
        accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
        rest.apply(f"{accounts}/{ACCOUNT}", core("ServiceAccount", ACCOUNT))
        for role in load_documents(self.plane.binaries.operator_manifest("rbac/role.yaml")):
            rest.apply(f"{rbac}/clusterroles/{role['metadata']['name']}", role)
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": ACCOUNT},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": ACCOUNT,
            },
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
        }
        rest.apply(f"{rbac}/clusterrolebindings/{ACCOUNT}", binding)

    def _install_certificates(self) -> None:
        files = self.plane.certificates
        content = {
            "ca.crt": files.ca.read_bytes(),
            "ca.key": files.ca_key.read_bytes(),
            "tls.crt": files.server.read_bytes(),
            "tls.key": files.server_key.read_bytes(),
        }
        secret = core("Secret", SECRET)
        secret["data"] = {key: base64.b64encode(data).decode() for key, data in content.items()}
        self.plane.rest.apply(f"/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}", secret)
        serving = self._temporary / SERVING
        serving.mkdir(parents=True, exist_ok=True)
        for key in ("ca.crt", "tls.crt", "tls.key"):
            (serving / key).write_bytes(content[key])
        # Only the presence of the fixed file is checked, so planes side by side may share it.
        if not FIXED_CERTIFICATE.exists():
            FIXED_CERTIFICATE.parent.mkdir(parents=True, exist_ok=True)
            FIXED_CERTIFICATE.write_bytes(content["tls.crt"])

    def _register_webhook(self) -> None:
        manifest = self.plane.binaries.operator_manifest("webhook/manifests.yaml")
        [shipped] = load_documents(manifest)
        hooks = [hook for hook in shipped["webhooks"] if ".pytorchjob." in hook["name"]]
        for hook in hooks:
            route = hook["clientConfig"]["service"]["path"]
            hook["clientConfig"] = {
                "url": f"https://127.0.0.1:{self._webhook_port}{route}",
                "caBundle": base64.b64encode(self.plane.ca_path.read_bytes()).decode(),
            }
        shipped["metadata"] = {"name": WEBHOOKS}
        shipped["webhooks"] = hooks
        group = "/apis/admissionregistration.k8s.io/v1"
        self.plane.rest.apply(f"{group}/validatingwebhookconfigurations/{WEBHOOKS}", shipped)


def core(kind: str, name: str) -> JsonObject:
    """Give the start of an object of the core group."""
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
