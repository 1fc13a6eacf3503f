"""The one place that builds objects and wires them: settings in, a running server out."""

import gc
import json
import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import TypeVar

import structlog
import uvicorn

from gateway.api.app import create_app
from gateway.api.tokens import TokenFile, new_token, token_line
from gateway.backends.base import LaunchBackend
from gateway.backends.machine_catalogue import known_facts, use_site_machines
from gateway.core.admission import Policies
from gateway.core.mirror import Mirror
from gateway.core.policies import named, register
from gateway.core.policies.fairness import FAIRNESS
from gateway.core.policies.ordering import ORDERING
from gateway.core.policies.placement import PLACEMENT
from gateway.core.vocabulary import BackendName, Role
from gateway.db.engine import open_database
from gateway.db.locking import lock_sqlite
from gateway.db.migrations import check_head, upgrade
from gateway.errors import InvalidInput, StartupRefused
from gateway.service.context import EVERY_NAMESPACE, Caller, Gateway, Leadership, MirrorState
from gateway.settings import Settings
from gateway.ticker import Ticker

log = structlog.get_logger()
CONTEXT_FILE = "context.json"
Policy = TypeVar("Policy")


def build_gateway(settings: Settings) -> Gateway:
    """Open the database, make the back end, and give the wired parts.

    Raises:
        StartupRefused: the schema is not this release's, the local back end is not allowed, or a
            policy that another distribution brings, or a machine type of the site, cannot be used.
    """
    register_policies()
    read_machines(settings)
    policies = policies_of(settings)
    database = open_database(
        settings.url,
        pool_size=settings.database_pool_size,
        has_pooler=settings.database_has_pooler,
    )
    with ExitStack() as undoing:
        # Who embeds the gateway may try again with other settings, on the same database.
        undoing.callback(database.close)
        check_head(database)
        backend = build_backend(settings)
        undoing.pop_all()
    return Gateway(
        database=database,
        backend=backend,
        settings=settings,
        leadership=Leadership(holder=f"{socket.gethostname()}-{secrets.token_hex(6)}"),
        mirror=MirrorState(mirror=Mirror(policies, known_facts())),
    )


def policies_of(settings: Settings) -> Policies:
    """Give the policies that the settings name; StartupRefused for one that nobody offers."""
    try:
        named("placement", PLACEMENT, settings.placement_policy)
    except InvalidInput as error:
        raise StartupRefused(
            f"no placement policy is called {settings.placement_policy!r}",
            pointer="/placement_policy",
            value=settings.placement_policy,
            allowed=error.allowed,
            hint=error.hint,
        ) from error
    return Policies(
        placement=settings.placement_policy,
        starvation_after_seconds=settings.starvation_after_seconds,
    )


def read_machines(settings: Settings) -> None:
    """Add the site's own machine types; StartupRefused for a file that is wrong."""
    try:
        use_site_machines(settings.machines_dir)
    except InvalidInput as error:
        # A type that is left out in silence would cost its nodes every near pair.
        raise StartupRefused(
            error.detail,
            pointer=error.pointer,
            value=error.value,
            allowed=error.allowed,
            hint=error.hint,
        ) from error


def register_policies() -> None:
    """Add the policies that installed distributions offer as entry points, one group a kind.

    The groups are `training_gateway.fairness`, `.ordering` and `.placement`; an entry point's name
    is the policy's.

    Raises:
        StartupRefused: one cannot be loaded, or its name is taken.
    """
    _register("fairness", FAIRNESS)
    _register("ordering", ORDERING)
    _register("placement", PLACEMENT)


def _register(kind: str, table: dict[str, Policy]) -> None:
    for entry in entry_points(group=f"training_gateway.{kind}"):
        try:
            register(kind, table, entry.name, entry.load())
        except (ImportError, AttributeError, InvalidInput) as error:
            owner = entry.dist.name if entry.dist else "an unknown distribution"
            raise StartupRefused(
                f"the {kind} policy {entry.name!r} of {owner} cannot be used: {error}",
                value=entry.value,
                hint=f"repair or uninstall {owner}",
            ) from error


def build_backend(settings: Settings) -> LaunchBackend:
    """Make the back end that the settings name; only that one is imported."""
    # A start with one back end must neither wait for nor need the libraries of another.
    from gateway.backends.virtual_fleet import virtual_fleet  # noqa: PLC0415 - see above

    match settings.backend:
        case BackendName.LOCAL:
            from gateway.backends.local import LocalBackend  # noqa: PLC0415 - see above

            _require_local(settings)
            return LocalBackend(
                settings.state_dir / "attempts",
                virtual_fleet(settings.virtual_fleet),
                orphan_seconds=settings.orphan_seconds,
            )
        case BackendName.SIMULATED:
            from gateway.backends.simulated import SimulatedBackend  # noqa: PLC0415 - see above

            return SimulatedBackend(
                virtual_fleet(settings.virtual_fleet), settings.state_dir / "simulated.json"
            )
        case BackendName.KUBEFLOW:
            from gateway.backends import kubeflow  # noqa: PLC0415 - see above

            return kubeflow.KubeflowBackend(
                kubeflow.KubeflowSettings(
                    kubeconfig=settings.kubeconfig,
                    namespaces=settings.namespaces,
                    call_seconds=settings.cluster_call_seconds,
                    priority_class=settings.pod_priority_class,
                )
            )


def _require_local(settings: Settings) -> None:
    if settings.allow_local_backend:
        return
    raise StartupRefused(
        "the local back end starts processes on this machine for whoever may submit",
        pointer="/backend",
        value=settings.backend.value,
        hint="use: gateway dev, or set TRAINING_GATEWAY_ALLOW_LOCAL_BACKEND=true "
        "on a machine that is yours alone",
    )


def serve(settings: Settings) -> None:
    """Run a server until SIGTERM; graceful: requests finish, the lease is given up."""
    if settings.token_file is None:
        raise StartupRefused(
            "a server needs a file of accepted tokens",
            pointer="/token_file",
            hint="write one with: gateway serve --new-token NAME, "
            "and set TRAINING_GATEWAY_TOKEN_FILE",
        )
    with _locked(settings):
        _run(build_gateway(settings), TokenFile(settings.token_file), settings)


def dev(settings: Settings, announce: Callable[[str], None] = print) -> None:
    """Run everything on this machine, with a token of its own that the command line picks up.

    `announce` hears the URL once it is known.
    """
    settings.state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _locked(settings):
        # Only here: a shared database is migrated by hand, before servers of the release start.
        upgrade(settings.url)
        token = new_token()
        tokens = settings.state_dir / "tokens"
        developer = Caller(name="developer", role=Role.ADMIN, namespaces=(EVERY_NAMESPACE,))
        _write_private(tokens, token_line(token, developer) + "\n")
        gateway = build_gateway(settings)
        context = settings.state_dir / CONTEXT_FILE
        # Bound before it is announced: with --port 0 the kernel chooses, and keeps it for us.
        with closing(gateway.database), closing(_bind(settings)) as bound:
            url = f"http://{settings.listen_host}:{bound.getsockname()[1]}"
            try:
                _write_private(
                    context, json.dumps({"url": url, "token": token, "pid": os.getpid()})
                )
                announce(url)
                _run(gateway, TokenFile(tokens), settings, bound)
            finally:
                # Also when nobody could be told: a context without a server misleads every command.
                context.unlink(missing_ok=True)


@contextmanager
def _locked(settings: Settings) -> Iterator[None]:
    # A second server on one SQLite file would wait for every write of the first; told at once.
    lock = lock_sqlite(settings.url)
    try:
        yield
    finally:
        if lock is not None:
            lock.close()


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    partial = path.with_suffix(".partial")
    # The mode at creation: a chmod afterwards leaves an instant in which anybody can open it.
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    partial.replace(path)


def calm_collector() -> None:
    """Spare the garbage collector what lives as long as the server, and look less often.

    A batch of a thousand jobs would otherwise spend a third of its time in fruitless searches.
    """
    gc.collect()
    # Collected first, for what is frozen is never looked at again, garbage included.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _bind(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.listen_host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    # Else a restart would be refused for a minute by the old connections in TIME_WAIT.
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((settings.listen_host, settings.listen_port))
    except OSError as error:
        bound.close()
        raise StartupRefused(
            f"cannot listen on {settings.listen_host}:{settings.listen_port}: {error.strerror}",
            pointer="/listen_port",
            value=settings.listen_port,
            hint="choose another with --port, or --port 0 for a free one",
        ) from error
    return bound


def _run(
    gateway: Gateway, tokens: TokenFile, settings: Settings, bound: socket.socket | None = None
) -> None:
    bound = bound or _bind(settings)
    ticker = Ticker(gateway)
    app = create_app(gateway, tokens)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=5,
            timeout_keep_alive=30,
        )
    )
    if threading.current_thread() is threading.main_thread():
        # A closed terminal must not end a server that was left running in it.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        # uvicorn raises the signal again after its own graceful stop; ours comes after that.
        signal.signal(signal.SIGTERM, lambda *_: None)
    calm_collector()
    ticker.start()
    log.info("listening", address=f"http://{bound.getsockname()[0]}:{bound.getsockname()[1]}")
    try:
        server.run(sockets=[bound])
    finally:
        ticker.stop()
        gateway.database.close()
        bound.close()
