"""Tables, transactions and query functions: the only place that knows SQLAlchemy.

The database is the last judge: what must never happen twice is refused here by a constraint, so a
bug above costs a retry and not a double grant. No network call happens inside a transaction.
"""
