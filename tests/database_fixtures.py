"""Fixtures for both databases: each test gets a fresh, migrated one, copied from a template."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.db.engine import Database, open_database
from gateway.db.migrations import upgrade
from tests.postgresql import Server, running

KINDS = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[Server]:
    """Give one server for the whole run."""
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a migrated SQLite file, to be copied."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def postgresql_template(postgresql_server: Server) -> Iterator[str]:
    """Give the name of a migrated database, to be copied."""
    name = postgresql_server.create()
    upgrade(postgresql_server.url_of(name))
    yield name
    postgresql_server.drop(name)


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """Give the URL of a fresh, migrated SQLite file."""
    path = tmp_path / "gateway.db"
    shutil.copy(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture
def postgresql_url(postgresql_server: Server, postgresql_template: str) -> Iterator[str]:
    """Give the URL of a fresh, migrated PostgreSQL database."""
    name = postgresql_server.create(postgresql_template)
    yield postgresql_server.url_of(name)
    postgresql_server.drop(name)


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest) -> str:
    """Give the URL of a fresh, migrated database of each kind."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture(params=KINDS)
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Give the URL of a database of each kind without any table."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    server: Server = request.getfixturevalue("postgresql_server")
    name = server.create()
    yield server.url_of(name)
    server.drop(name)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """Give a fresh, migrated database of each kind, open."""
    opened = open_database(database_url)
    yield opened
    opened.close()
