"""Who waits, in which order: a million jobs as columns, sorted lines, and their heads.

Here nothing is decided: no quota, no node. A line knows which of its jobs comes next and which of
them must not be looked at yet.
"""
