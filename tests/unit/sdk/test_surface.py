"""What the SDK exports, and that it stays light."""

import subprocess
import sys

import gateway.sdk
from gateway.sdk import Client, JobHandle

HEAVY = ("numpy", "sqlalchemy", "kubernetes", "fastapi", "structlog", "pydantic_settings", "kfp")


def public(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def test_exactly_these_names_are_exported() -> None:
    assert set(gateway.sdk.__all__) == {
        *("BatchOutcome", "Client", "JobHandle", "JobResult", "submit"),
    }
    assert all(hasattr(gateway.sdk, name) for name in gateway.sdk.__all__)


def test_a_client_offers_exactly_this() -> None:
    with Client("http://127.0.0.1:1", "token") as client:
        assert public(type(client)) | set(vars(client)) - {"_wire", "_local"} == {
            *("batch", "close", "cohorts", "definitions", "devices", "events", "flavors"),
            *(
                "health",
                "jobs",
                "local",
                "nodes",
                "plan",
                "priority_classes",
                "queues",
                "submit",
                "url",
                "usage",
            ),
            "whoami",
        }


def test_a_handle_offers_exactly_this() -> None:
    assert public(JobHandle) == {
        *("assignments", "attempts", "cancel", "detail", "events", "explain", "hold", "id"),
        *("is_done", "logs", "name", "reason", "refresh", "release", "reprioritise", "requeue"),
        *("result", "state", "top", "wait"),
    }


def test_importing_it_loads_nothing_heavy() -> None:
    program = f"import sys, gateway.sdk; print([m for m in {HEAVY} if m in sys.modules])"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert told.stdout.decode().strip() == "[]"
