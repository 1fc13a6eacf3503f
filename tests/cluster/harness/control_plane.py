"""One control plane: etcd, kube-apiserver, kube-controller-manager and kube-scheduler.

It knows nothing of nodes, pods or jobs; see `cluster.py` for the whole with operator and kubelet.
"""

import secrets
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx2

from tests.cluster.harness.binaries import Binaries
from tests.cluster.harness.certificates import Certificates, make_certificates
from tests.cluster.harness.kubeconfig import Access, write_kubeconfig
from tests.cluster.harness.processes import Program, Programs, free_port
from tests.cluster.harness.rest import Rest
from tests.cluster.harness.tokens import account_token

LOOPS = ("kube-controller-manager", "kube-scheduler")
IDENTITIES = {
    "admin": "system:masters",
    "fake-kubelet": "system:masters",
    "system:kube-controller-manager": "",
    "system:kube-scheduler": "",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """Further command-line flags, for tests that need another control plane."""

    api_server: tuple[str, ...] = ()
    controllers: tuple[str, ...] = ()
    scheduler: tuple[str, ...] = ()
    feature_gates: str = ""
    """Given to all three, such as GenericWorkload=true."""
    has_loops: bool = True
    """Whether controllers and scheduler run; a benchmark of the API server needs none."""


@dataclass(slots=True)
class ControlPlane:
    """Four processes on free loopback ports, with all their data below one folder."""

    binaries: Binaries
    folder: Path
    flags: Flags = field(default_factory=Flags)
    tokens: dict[str, str] = field(init=False, default_factory=dict)
    programs: Programs = field(init=False)
    certificates: Certificates = field(init=False)
    rest: Rest = field(init=False)
    """A client with all rights, for the tests' own eyes and hands."""
    dependents: list[Callable[[], None]] = field(init=False, default_factory=list)
    """Called after the API server came back."""
    _started: list[Program] = field(init=False, default_factory=list)
    _port: int = field(init=False, default=0)
    _etcd_url: str = field(init=False, default="")

    @property
    def url(self) -> str:
        """Give the address of the API server."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def ca_path(self) -> Path:
        """Give the certificate authority of every server here."""
        return self.certificates.ca

    @property
    def admin_token(self) -> str:
        """Give the token that may do everything; the product must never get it."""
        return self.tokens["admin"]

    def start(self) -> None:
        """Start all four and return when they answer.

        Raises:
            ProgramFailed: one of them ended or did not answer in time.
        """
        self.programs = Programs(self.folder)
        self.certificates = make_certificates(self.folder / "certificates")
        self.tokens = {name: secrets.token_hex(16) for name in IDENTITIES}
        self._port = free_port()
        self._start_etcd()
        self.start_api_server()
        self.rest = Rest(self.url, self.ca_path, self.admin_token)
        if self.flags.has_loops:
            self._start_loops()

    def stop(self) -> None:
        """End the loops, then the API server, then etcd: without etcd the API server hangs."""
        if self._port and hasattr(self, "rest"):
            self.rest.close()
        for program in reversed(self._started):
            program.stop()
        self._started.clear()
        if hasattr(self, "programs"):
            self.programs.close()

    def stop_api_server(self) -> None:
        """End the API server only, for tests of an unreachable cluster."""
        program = self._program("kube-apiserver")
        program.stop(patience_seconds=1.0)
        self._started.remove(program)

    def kubeconfig_for(self, token: str, path: Path, namespace: str = "default") -> Path:
        """Write a kubeconfig with this token to `path`."""
        return write_kubeconfig(path, Access(url=self.url, ca=self.ca_path), token, namespace)

    def kubeconfig_for_account(self, namespace: str, account: str, path: Path) -> Path:
        """Write a kubeconfig with a fresh token of this ServiceAccount, valid for a day."""
        token = account_token(self.rest, namespace, account)
        return self.kubeconfig_for(token, path, namespace)

    def version(self) -> str:
        """Give what the API server calls itself, such as v1.37.2."""
        return str(self.rest.get("/version")["gitVersion"])

    def _program(self, name: str) -> Program:
        return next(program for program in self._started if program.name == name)

    def _launch(self, name: str, command: list[str], ready_url: str) -> None:
        program = self.programs.start(name, command)
        self._started.append(program)
        program.wait_ready(partial(answers, ready_url, self.ca_path, self.admin_token))

    def _start_etcd(self) -> None:
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        flags = [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]
        self._launch("etcd", [str(self.binaries.etcd), *flags], f"{client}/health")
        self._etcd_url = client

    def start_api_server(self) -> None:
        """Start the API server unless it runs; after a stop with the same address and data."""
        if any(program.name == "kube-apiserver" for program in self._started):
            return  # a second one could not bind, and a later stop would end the wrong one
        files = self.certificates
        flags = [
            f"--etcd-servers={self._etcd_url}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            # A loopback address may not stand in an Endpoints object.
            "--endpoint-reconciler-type=none",
            f"--secure-port={self._port}",
            f"--cert-dir={self.folder / 'certificates'}",
            f"--tls-cert-file={files.server}",
            f"--tls-private-key-file={files.server_key}",
            f"--client-ca-file={files.ca}",
            f"--token-auth-file={self._write_tokens()}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={files.account_public_key}",
            f"--service-account-signing-key-file={files.account_key}",
            "--allow-privileged=true",
            # Logs are fetched from the fake kubelet by the address its nodes name.
            "--kubelet-preferred-address-types=InternalIP",
            f"--kubelet-certificate-authority={files.ca}",
            *self._gates(),
            *self.flags.api_server,
        ]
        command = [str(self.binaries.kubernetes("kube-apiserver")), *flags]
        self._launch("kube-apiserver", command, f"{self.url}/readyz")
        # However late it was started: everything else but etcd must end before it.
        self._started.insert(1, self._started.pop())
        self._restart_loops()

    def _restart_loops(self) -> None:
        """Start scheduler and controllers anew if they ran before.

        After several outages they would wait up to a minute before they look again.
        """
        running = [program for program in self._started if program.name in LOOPS]
        for program in reversed(running):
            program.stop()
            self._started.remove(program)
        if not running:
            return
        self._start_loops()
        for dependent in self.dependents:
            dependent()

    def _start_loops(self) -> None:
        files = self.certificates
        controllers = [
            f"--service-account-private-key-file={files.account_key}",
            f"--root-ca-file={files.ca}",
            # Without it RBAC forbids the node controller to read Leases: nodes stay tainted.
            "--use-service-account-credentials=true",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            # Tests of a lost node must not wait the usual minute.
            "--node-monitor-period=2s",
            "--node-monitor-grace-period=20s",
            *self.flags.controllers,
        ]
        loops = {
            LOOPS[0]: controllers,
            LOOPS[1]: ["--kube-api-qps=200", "--kube-api-burst=400", *self.flags.scheduler],
        }
        waiting = [self._start_loop(name, flags) for name, flags in loops.items()]
        for program, url in waiting:
            program.wait_ready(partial(answers, url, self.ca_path, self.admin_token))

    def _start_loop(self, name: str, flags: list[str]) -> tuple[Program, str]:
        port = free_port()
        config = self.kubeconfig_for(self.tokens[f"system:{name}"], self.folder / f"{name}.yaml")
        common = [
            f"--kubeconfig={config}",
            f"--authentication-kubeconfig={config}",
            f"--authorization-kubeconfig={config}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={self.certificates.server}",
            f"--tls-private-key-file={self.certificates.server_key}",
        ]
        command = [str(self.binaries.kubernetes(name)), *common, *self._gates(), *flags]
        program = self.programs.start(name, command)
        self._started.append(program)
        return program, f"https://127.0.0.1:{port}/healthz"

    def _gates(self) -> list[str]:
        gates = self.flags.feature_gates
        return [f"--feature-gates={gates}"] if gates else []

    def _write_tokens(self) -> Path:
        lines = [
            f'{token},{name},{name},"{IDENTITIES[name]}"' for name, token in self.tokens.items()
        ]
        path = self.folder / "tokens.csv"
        path.touch(mode=0o600)
        path.write_text("\n".join(lines) + "\n")
        return path


def answers(url: str, ca: Path, token: str = "") -> bool:
    """Say whether a health address answers 200; connection errors are raised."""
    trusted = ssl.create_default_context(cafile=str(ca))
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answer = httpx2.get(url, headers=headers, verify=trusted, timeout=2, trust_env=False)
    return answer.is_success
