"""Plays the kubelets of all nodes in a thread of the test run.

A test scripts pods before they start, tells running ones how to end, and asks what environment
their containers got. The real scheduler binds; this never does.
"""

import threading
from pathlib import Path

import httpx2

from tests.cluster.harness.certificates import Certificates
from tests.cluster.harness.log_book import LogBook
from tests.cluster.harness.log_server import LogServer
from tests.cluster.harness.node_heartbeat import NodeHeartbeat
from tests.cluster.harness.pod_player import PodPlayer
from tests.cluster.harness.rest import JsonObject, Refused, Rest
from tests.cluster.harness.scripts import Ending, PodScript, ScriptBook
from tests.cluster.harness.waiting import wait_until

TICK_SECONDS = 0.1
EXPECTED = frozenset({404, 409, 503})
"""The pod is gone or changed, or a test stops the API server."""


class FakeKubelet:
    """All kubelets of a cluster; start it once, reset it between tests."""

    def __init__(self, rest: Rest, certificates: Certificates) -> None:
        """Take a client of its own, which it closes at the end."""
        self._rest = rest
        self._book = LogBook()
        self._logs = LogServer(self._book, certificates)
        self._scripts = ScriptBook()
        self._player = PodPlayer(rest, self._book, self._scripts)
        self._nodes = NodeHeartbeat(rest, self._logs.port)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="fake-kubelet")
        self.troubles: list[str] = []
        """Errors of its own loop; empty in a sound run."""

    def start(self) -> None:
        """Serve logs and look after nodes and pods from now on."""
        self._logs.start()
        self._thread.start()

    def stop(self) -> None:
        """End both threads; nodes then stop being renewed."""
        self._stopping.set()
        self._thread.join()
        self._logs.stop()
        self._rest.close()

    def script(self, script: PodScript) -> None:
        """Put a script in force for pods now and later; the newest that matches wins."""
        self._scripts.add(script)

    def reset(self) -> None:
        """Forget all scripts, orders and lost nodes: pods run until told, deleted ones go."""
        self._scripts.clear()
        self._player.told.clear()
        self._nodes.lost.clear()

    def finish(self, namespace: str, pod: str, exit_code: int = 0) -> None:
        """Tell the containers of a running pod to exit with this code.

        With a restart policy that says so they start again in place, as on a real node.
        """
        self._player.told[namespace, pod] = Ending(exit_code=exit_code)

    def fail(self, namespace: str, pod: str, reason: str = "Evicted", message: str = "") -> None:
        """End a whole running pod for a reason of the node's; nothing restarts in place."""
        ending = Ending(exit_code=137, reason=reason, message=message)
        self._player.told[namespace, pod] = ending

    def print_line(self, namespace: str, pod: str, line: str, container: str = "pytorch") -> None:
        """Let a container print a line."""
        self._book.write((namespace, pod, container), line)

    def environment(
        self, namespace: str, pod: str, container: str = "pytorch", timeout_seconds: float = 20.0
    ) -> dict[str, str]:
        """Give the resolved variables of a container, waiting until the pod has started."""
        uid = wait_until(
            lambda: self._player.uids.get((namespace, pod)),
            f"pod {namespace}/{pod} to start",
            timeout_seconds,
        )
        return self.environment_of(uid, container)

    def environment_of(self, uid: str, container: str = "pytorch") -> dict[str, str]:
        """Give the resolved variables a pod's container started with last, by the pod's uid."""
        return self._player.environments[uid][container]

    def lose_node(self, name: str) -> None:
        """Stop everything on a node: no renewals, no starts, no ends, no removals."""
        self._nodes.lost.add(name)

    def restore_node(self, name: str) -> None:
        """Bring a lost node back."""
        self._nodes.lost.discard(name)

    def _loop(self) -> None:
        while not self._stopping.wait(TICK_SECONDS):
            try:
                self._nodes.beat()
                self._play_all()
            except httpx2.TransportError:
                continue  # a test stopped the API server
            except Refused as error:
                if error.status != httpx2.codes.SERVICE_UNAVAILABLE:  # it is shutting down
                    self.troubles.append(repr(error))
            except Exception as error:  # noqa: BLE001 - the loop must outlive one odd object
                self.troubles.append(repr(error))

    def _play_all(self) -> None:
        pods = self._rest.items("/api/v1/pods", resourceVersion="0")
        self._player.forget_all_but({pod["metadata"]["uid"] for pod in pods})
        for pod in pods:
            if pod["spec"].get("nodeName", "") not in {"", *self._nodes.lost}:
                self._play(pod)

    def _play(self, pod: JsonObject) -> None:
        try:
            self._player.play(pod)
        except Refused as error:
            if error.status not in EXPECTED:
                self.troubles.append(f"{pod['metadata']['name']}: {error}")


def start_kubelet(url: str, token: str, certificates: Certificates) -> FakeKubelet:
    """Start a kubelet for all nodes of the cluster at `url`."""
    ca: Path = certificates.ca
    kubelet = FakeKubelet(Rest(url, ca, token), certificates)
    kubelet.start()
    return kubelet
