"""The schema that migrations make is the one that the tables declare, on both databases."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from gateway.db.engine import Database, open_database
from gateway.db.migrations import (
    check_head,
    configuration,
    current_revision,
    newest_revision,
    script_location,
    upgrade,
)
from gateway.db.tables import metadata
from gateway.errors import StartupRefused
from tests.database_fixtures import KINDS
from tests.postgresql import Server


@pytest.fixture(params=KINDS)
def both_ways(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[Database, Database]]:
    """Give two databases of one kind: made by migrations, made from the declared tables."""
    migrated = open_database(request.getfixturevalue(f"{request.param}_url"))
    if migrated.is_sqlite:
        declared = open_database(f"sqlite:///{tmp_path / 'declared.db'}")
    else:
        server: Server = request.getfixturevalue("postgresql_server")
        name = server.create()
        declared = open_database(server.url_of(name))
    metadata.create_all(declared.engine)
    yield migrated, declared
    migrated.close()
    declared.close()
    if not migrated.is_sqlite:
        server.drop(name)


@pytest.fixture
def empty(empty_database_url: str) -> Iterator[Database]:
    """Give a database without any table, open."""
    opened = open_database(empty_database_url)
    yield opened
    opened.close()


def facts(connection: Connection) -> dict[str, Any]:
    """Give what autogenerate does not compare: checks, partial indexes, constraint names."""
    inspector = inspect(connection)
    return {
        table: {
            "checks": sorted(
                (item["name"], item["sqltext"]) for item in inspector.get_check_constraints(table)
            ),
            "indexes": sorted(
                (str(item["name"]), str(item["column_names"]), str(item["unique"]), _where(item))
                for item in inspector.get_indexes(table)
            ),
            "uniques": sorted(
                (str(item["name"]), str(item["column_names"]))
                for item in inspector.get_unique_constraints(table)
            ),
            "key": inspector.get_pk_constraint(table)["name"],
            "foreign": sorted(str(item["name"]) for item in inspector.get_foreign_keys(table)),
        }
        for table in sorted(metadata.tables)
    }


def _where(index: Any) -> str:
    options = index.get("dialect_options", {})
    return str(options.get("sqlite_where", options.get("postgresql_where", "")))


def test_migrations_make_exactly_the_declared_schema(database: Database) -> None:
    with database.read() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True}
        )
        assert compare_metadata(context, metadata) == []


def test_checks_and_partial_indexes_are_the_declared_ones(
    both_ways: tuple[Database, Database],
) -> None:
    with both_ways[0].read() as migrated, both_ways[1].read() as declared:
        assert facts(migrated) == facts(declared)


def test_there_is_one_line_of_migrations() -> None:
    scripts = ScriptDirectory.from_config(configuration())
    assert scripts.get_heads() == [newest_revision()]
    assert all(script.doc.strip() for script in scripts.walk_revisions())


def test_every_migration_can_be_undone_and_done_again(empty_database_url: str) -> None:
    upgrade(empty_database_url)
    database = open_database(empty_database_url)
    with database.write() as writer:
        command.downgrade(configuration(writer.connection), "base")
        left = set(inspect(writer.connection).get_table_names()) - {"alembic_version"}
    database.close()
    assert not left
    assert upgrade(empty_database_url) == newest_revision()


def test_a_fresh_database_has_one_unlimited_queue_and_flavor(database: Database) -> None:
    with database.read() as connection:
        assert connection.execute(text("SELECT name FROM queues")).scalars().all() == ["default"]
        assert connection.execute(text("SELECT name FROM flavors")).scalars().all() == ["default"]
        assert connection.execute(text("SELECT count(*) FROM quotas")).scalar_one() == 0


def test_upgrading_twice_keeps_what_is_there(database_url: str) -> None:
    database = open_database(database_url)
    with database.write() as writer:
        writer.connection.execute(text("UPDATE queues SET weight = 7"))
    upgrade(database_url)
    with database.read() as connection:
        assert connection.execute(text("SELECT weight FROM queues")).scalars().all() == [7]
    database.close()


def test_two_migrators_at_once_both_succeed(empty_database_url: str) -> None:
    done: list[str] = []
    threads = [
        threading.Thread(target=lambda: done.append(upgrade(empty_database_url))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert done == [newest_revision()] * 2


def test_a_server_refuses_an_empty_database_and_says_what_to_run(empty: Database) -> None:
    with pytest.raises(StartupRefused) as refused:
        check_head(empty)
    assert refused.value.hint == "run: gateway db upgrade"


def test_an_unknown_revision_is_refused_by_server_and_migrator(
    database: Database, database_url: str
) -> None:
    check_head(database)
    with database.write() as writer:
        writer.connection.execute(text("UPDATE alembic_version SET version_num = 'fff9'"))
    for refuse in (lambda: check_head(database), lambda: upgrade(database_url)):
        with pytest.raises(StartupRefused) as refused:
            refuse()
        assert refused.value.value == "fff9"
        assert "gateway db upgrade" in refused.value.hint


def test_a_failed_migration_leaves_nothing_behind(
    empty: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_writer: object) -> None:
        raise RuntimeError("out of luck")

    monkeypatch.setattr("gateway.db.migrations.seed", fail)
    url = empty.engine.url.render_as_string(hide_password=False)
    with pytest.raises(RuntimeError):
        upgrade(url.replace("+psycopg", ""))
    assert current_revision(empty) is None
    with empty.read() as connection:
        assert inspect(connection).get_table_names() == []


def test_migration_files_are_found_beside_the_package() -> None:
    assert (script_location() / "env.py").is_file()
