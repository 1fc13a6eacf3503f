"""Use cases, one a function: read, ask the core, write in one transaction, call a back end outside.

Functions take the Gateway first and, where a person asks, the Caller second. Nothing here knows
HTTP, and no transaction is open during a call to a cluster.
"""
