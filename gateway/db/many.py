"""Many rows in one statement, on both databases.

PostgreSQL gets all rows as one JSON document: a single message and a single plan, where the
driver's `executemany` sends each row by itself. SQLite runs in this process, and repeating a
prepared statement costs it next to nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    JSON,
    ColumnElement,
    Table,
    TableValuedAlias,
    Update,
    bindparam,
    column,
    func,
    insert,
    select,
)
from sqlalchemy.types import TypeEngine

from gateway.db.engine import Writer

Types = Mapping[str, TypeEngine[Any]]
"""Of the columns of the given rows, by name."""
Given = Callable[[str], ColumnElement[Any]]
"""Gives the value of a column of the given row."""
_ROWS = "given_rows"


def insert_rows(writer: Writer, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows that all set the same columns; nothing for no rows."""
    if not rows:
        return
    if writer.is_sqlite or len(rows) == 1:
        writer.connection.execute(insert(table), list(rows))
        return
    names = list(rows[0])
    given = _document({name: table.c[name].type for name in names})
    statement = insert(table).from_select(names, select(*given.c), include_defaults=False)
    writer.connection.execute(statement, {_ROWS: list(rows)})


def update_rows(
    writer: Writer,
    types: Types,
    rows: Sequence[Mapping[str, Any]],
    build: Callable[[Given], Update],
) -> int:
    """Update by rows of which no two mean the same one; gives how many were met.

    Args:
        writer: the transaction.
        types: of what each given row holds.
        rows: the given rows.
        build: gives the statement, from what stands for a column of the given row.
    """
    if not rows:
        return 0
    if writer.is_sqlite or len(rows) == 1:
        statement = build(lambda name: bindparam(name, type_=types[name]))
        return writer.connection.execute(statement, list(rows)).rowcount
    given = _document(types)
    return writer.connection.execute(build(given.c.__getitem__), {_ROWS: list(rows)}).rowcount


def _document(types: Types) -> TableValuedAlias:
    columns = [column(name, type_) for name, type_ in types.items()]
    read = func.json_to_recordset(bindparam(_ROWS, type_=JSON))
    return read.table_valued(*columns).render_derived(name="given", with_types=True)
