"""What a server is built of, when it refuses to start, and what it leaves behind."""

import gc
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gateway import bootstrap
from gateway.backends.kubeflow import KubeflowBackend
from gateway.backends.local import LocalBackend
from gateway.backends.simulated import SimulatedBackend
from gateway.bootstrap import build_backend, build_gateway, dev, serve
from gateway.core.vocabulary import BackendName
from gateway.db.migrations import upgrade
from gateway.errors import InvalidInput, StartupRefused
from gateway.settings import Settings

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: it
clusters: [{name: it, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: it, user: {token: t}}]
contexts: [{name: it, context: {cluster: it, user: it}}]
"""


def settings(folder: Path, **values: Any) -> Settings:
    values = {"backend": "simulated", "listen_port": 0, **values}
    return Settings(state_dir=folder / "state", **values)


def refused(folder: Path, **values: Any) -> StartupRefused:
    with pytest.raises(StartupRefused) as caught:
        build_backend(settings(folder, **values))
    return caught.value


def test_the_simulated_back_end_has_its_fleet_and_its_file(tmp_path: Path) -> None:
    backend = build_backend(settings(tmp_path, virtual_fleet="1xcpu,2xp4d"))

    assert isinstance(backend, SimulatedBackend)
    assert [node.name for node in backend.inventory()] == ["cpu-0", "p4d-0", "p4d-1"]
    backend.set_node_health("cpu-0", backend.inventory()[0].health)
    assert (tmp_path / "state" / "simulated.json").exists()


def test_the_local_back_end_keeps_its_attempts_in_the_state_folder(tmp_path: Path) -> None:
    backend = build_backend(
        settings(tmp_path, backend="local", allow_local_backend=True, orphan_seconds=7)
    )

    assert isinstance(backend, LocalBackend)
    assert (backend._state.path, backend._orphan_seconds) == (tmp_path / "state" / "attempts", 7)


def test_the_kubeflow_back_end_is_told_its_settings(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(KUBECONFIG)
    backend = build_backend(
        settings(
            tmp_path,
            backend="kubeflow",
            kubeconfig=config,
            namespaces="a,b",
            pod_priority_class="low",
            cluster_call_seconds=2,
        )
    )

    assert isinstance(backend, KubeflowBackend)
    told = backend._settings
    assert (told.namespaces, told.priority_class, told.call_seconds) == (("a", "b"), "low", 2)


def test_the_local_back_end_is_refused_unless_somebody_says_whose_machine_it_is(
    tmp_path: Path,
) -> None:
    error = refused(tmp_path, backend="local")

    assert error.detail == (
        "the local back end starts processes on this machine for whoever may submit"
    )
    assert (error.pointer, error.value) == ("/backend", "local")
    assert "TRAINING_GATEWAY_ALLOW_LOCAL_BACKEND=true" in error.hint
    assert not (tmp_path / "state").exists(), "nothing was made before the refusal"


@pytest.mark.parametrize("backend", ["local", "simulated"])
def test_a_fleet_that_cannot_be_meant_is_refused_with_the_known_machines(
    tmp_path: Path, backend: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        build_backend(
            settings(tmp_path, backend=backend, allow_local_backend=True, virtual_fleet="3xnone")
        )
    assert "dgx-h100" in caught.value.allowed


def test_a_cluster_without_credentials_is_refused_before_any_request(tmp_path: Path) -> None:
    error = refused(tmp_path, backend="kubeflow", kubeconfig=tmp_path / "missing")

    assert error.value == str(tmp_path / "missing")
    assert "TRAINING_GATEWAY_KUBECONFIG" in error.hint


def test_back_ends_without_a_cluster_need_no_kubernetes_client(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from gateway.bootstrap import build_backend\n"
        "from gateway.settings import Settings\n"
        f"for name in {[BackendName.LOCAL.value, BackendName.SIMULATED.value]}:\n"
        f"    build_backend(Settings(state_dir=Path({str(tmp_path)!r}), backend=name,"
        " allow_local_backend=True))\n"
        "print('kubernetes' in sys.modules)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"


def test_a_gateway_is_not_built_on_an_empty_database(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()

    with pytest.raises(StartupRefused) as caught:
        build_gateway(settings(tmp_path))
    assert caught.value.hint == "run: gateway db upgrade"
    assert open_files(tmp_path) == [], "the database is not left open"


def test_a_gateway_without_its_back_end_leaves_the_database_closed(tmp_path: Path) -> None:
    config = settings(tmp_path, backend="local")
    config.state_dir.mkdir()
    upgrade(config.url)

    with pytest.raises(StartupRefused, match="starts processes on this machine") as caught:
        build_gateway(config)
    assert open_files(tmp_path) == []
    assert caught.value.pointer == "/backend"


def test_a_gateway_places_by_the_policy_of_its_settings(tmp_path: Path) -> None:
    config = settings(tmp_path, placement_policy="spread")
    config.state_dir.mkdir()
    upgrade(config.url)
    gateway = build_gateway(config)
    gateway.database.close()

    assert gateway.mirror.mirror.state.policies.placement == "spread"


def test_a_placement_policy_that_nobody_offers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartupRefused) as caught:
        build_gateway(settings(tmp_path, placement_policy="scatter"))

    assert (caught.value.pointer, caught.value.value) == ("/placement_policy", "scatter")
    assert caught.value.allowed == ("fragmentation", "pack", "spread")
    assert caught.value.hint == "choose one of: fragmentation, pack, spread"


def test_a_wrong_machine_type_of_the_site_keeps_the_gateway_from_starting(tmp_path: Path) -> None:
    (tmp_path / "my-board.yaml").write_text("{cpu_cores: 1, memory_gib: 1, gpus: [], nicks: []}")

    with pytest.raises(StartupRefused, match="/nicks is no known field") as caught:
        build_gateway(settings(tmp_path, machines_dir=tmp_path))

    assert caught.value.hint == "did you mean 'nics'?"


def open_files(folder: Path) -> list[str]:
    """Give the files below a folder that this program holds open."""
    gc.collect()
    held = [link.readlink() for link in Path("/proc/self/fd").iterdir() if link.exists()]
    return [str(path) for path in held if path.is_relative_to(folder)]


def test_each_gateway_leads_under_a_name_of_its_own(tmp_path: Path) -> None:
    config = settings(tmp_path)
    config.state_dir.mkdir()
    upgrade(config.url)
    built = [build_gateway(config) for _ in range(2)]
    holders = [gateway.leadership.holder for gateway in built]
    for gateway in built:
        gateway.database.close()

    assert len(set(holders)) == 2
    assert all(holder.startswith(f"{socket.gethostname()}-") for holder in holders)


def test_a_server_without_accepted_tokens_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartupRefused) as caught:
        serve(settings(tmp_path))

    assert caught.value.pointer == "/token_file"
    assert caught.value.hint == (
        "write one with: gateway serve --new-token NAME, and set TRAINING_GATEWAY_TOKEN_FILE"
    )


@pytest.fixture
def taken_port() -> Iterator[int]:
    with closing(socket.create_server(("127.0.0.1", 0))) as holder:
        yield holder.getsockname()[1]


def test_a_port_that_is_taken_is_named_with_a_way_out(tmp_path: Path, taken_port: int) -> None:
    with pytest.raises(StartupRefused) as caught:
        bootstrap._bind(settings(tmp_path, listen_port=taken_port))

    assert caught.value.detail == f"cannot listen on 127.0.0.1:{taken_port}: Address already in use"
    assert (caught.value.pointer, caught.value.value) == ("/listen_port", taken_port)
    assert caught.value.hint == "choose another with --port, or --port 0 for a free one"


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid", "::2"])
def test_an_address_that_is_not_this_machines_is_refused(tmp_path: Path, host: str) -> None:
    with pytest.raises(StartupRefused) as caught:
        bootstrap._bind(settings(tmp_path, listen_host=host))

    assert caught.value.detail.startswith(f"cannot listen on {host}:0: ")


def test_port_0_takes_a_free_one(tmp_path: Path) -> None:
    with closing(bootstrap._bind(settings(tmp_path))) as bound:
        assert bound.getsockname()[1] > 0
        assert bound.family is socket.AF_INET


def test_a_second_server_on_one_sqlite_file_is_refused_and_the_first_stays(tmp_path: Path) -> None:
    config = settings(tmp_path)
    with bootstrap._locked(config):
        with pytest.raises(StartupRefused, match=f"another gateway \\(process {os.getpid()}\\)"):
            dev(config)
        with pytest.raises(StartupRefused, match="already works on"):
            serve(settings(tmp_path, token_file=tmp_path / "tokens"))

    with bootstrap._locked(config):
        pass  # given up with the first


@pytest.mark.parametrize("before", [None, "old and much longer than the new one"])
def test_a_private_file_is_whole_and_its_owners_alone(tmp_path: Path, before: str | None) -> None:
    path = tmp_path / "context.json"
    if before is not None:
        path.write_text(before)
        path.chmod(0o644)
    old_mask = os.umask(0)
    try:
        bootstrap._write_private(path, "new ä")
    finally:
        os.umask(old_mask)

    assert path.read_text() == "new ä"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_dev_server_that_cannot_listen_leaves_no_context_behind(
    tmp_path: Path, taken_port: int
) -> None:
    announced: list[str] = []

    with pytest.raises(StartupRefused, match="Address already in use"):
        dev(settings(tmp_path, listen_port=taken_port), announced.append)

    assert announced == []
    state = tmp_path / "state"
    assert not (state / bootstrap.CONTEXT_FILE).exists()
    assert state.stat().st_mode & 0o077 == 0


def test_a_dev_server_announces_where_it_is_and_tidies_up(tmp_path: Path) -> None:
    announced: list[str] = []
    config = settings(tmp_path)
    seen: list[dict[str, Any]] = []

    def hear(url: str) -> None:
        announced.append(url)
        seen.append(json.loads((config.state_dir / bootstrap.CONTEXT_FILE).read_text()))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dev(config, hear)

    [context] = seen
    assert announced == [context["url"]]
    assert context["url"].startswith("http://127.0.0.1:")
    assert context["pid"] == os.getpid()
    tokens = (config.state_dir / "tokens").read_text()
    assert tokens.startswith("developer admin * ")
    assert context["token"] not in tokens, "the file holds a digest only"
    assert not (config.state_dir / bootstrap.CONTEXT_FILE).exists()


def test_the_collector_is_calmed_but_not_turned_off() -> None:
    before = gc.get_threshold()
    try:
        bootstrap.calm_collector()

        assert gc.isenabled()
        assert gc.get_threshold()[0] > before[0]
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
