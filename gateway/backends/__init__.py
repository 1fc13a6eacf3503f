"""Launch back ends: where gangs really run. One protocol, one conformance suite.

A back end is told, never asked to decide: it creates, starts, opens, observes and stops exactly
what the service names, keeps no state that the database needs, and never talks to the database.
"""
