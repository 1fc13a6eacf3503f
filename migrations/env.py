"""Alembic's entry: runs migrations on the connection that the caller opened."""

from alembic import context

from gateway.db.tables import metadata

# The caller's, never a URL of our own: it holds the migration lock and owns the transaction.
connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    render_as_batch=connection.dialect.name == "sqlite",
    compare_type=True,
    compare_server_default=True,
)
with context.begin_transaction():
    context.run_migrations()
