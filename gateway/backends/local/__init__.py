"""Gangs as plain programs of this machine, for development and demonstrations.

Each gang has one supervisor program that outlives the gateway; everything that must survive a kill
stands in the attempt's folder. Nothing is isolated here: whoever may submit runs code as the
gateway's user.
"""

from gateway.backends.local.backend import LocalBackend

__all__ = ["LocalBackend"]
