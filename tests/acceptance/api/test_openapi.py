"""The OpenAPI document is part of the public surface: it changes only on purpose."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gateway.api.app import PREFIX, documented_app
from gateway.api.openapi import main, render
from tests.acceptance.conftest import Served

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "reference" / "openapi.json"


def test_the_document_is_the_one_in_the_docs(tmp_path: Path) -> None:
    command = "python -m gateway.api.openapi docs/reference/openapi.json"
    assert render(documented_app()) == DOCUMENT.read_text(), f"run: {command}"
    assert main([str(tmp_path / "openapi.json")]) == 0
    assert (tmp_path / "openapi.json").read_text() == DOCUMENT.read_text()
    assert main([]) == 2


def test_a_server_serves_the_same_document(shared: Served) -> None:
    assert shared.http().get("/openapi.json").json() == json.loads(DOCUMENT.read_text())


def test_every_reference_leads_somewhere() -> None:
    text = DOCUMENT.read_text()
    known = set(json.loads(text)["components"]["schemas"])
    assert set(re.findall(r"#/components/schemas/([\w-]+)", text)) <= known


def operations() -> list[tuple[str, dict[str, Any]]]:
    paths = json.loads(DOCUMENT.read_text())["paths"]
    return [
        (f"{method} {path}", operation)
        for path, methods in paths.items()
        for method, operation in methods.items()
    ]


@pytest.mark.parametrize(("name", "operation"), operations(), ids=lambda it: str(it)[:60])
def test_every_route_says_what_it_does_and_how_it_fails(
    name: str, operation: dict[str, Any]
) -> None:
    assert operation["description"], name
    assert "application/problem+json" in operation["responses"]["default"]["content"]
    is_open = name.endswith(("healthz", "readyz"))
    assert operation.get("security") == ([] if is_open else None)


def test_every_promised_route_is_there() -> None:
    paths = {path.removeprefix(PREFIX) for path in json.loads(DOCUMENT.read_text())["paths"]}
    promised = {
        *("/jobs", "/jobs:batch", "/jobs/{job_id}", "/jobs/{job_id}:cancel"),
        *("/jobs/{job_id}:hold", "/jobs/{job_id}:release", "/jobs/{job_id}:requeue"),
        *("/jobs/{job_id}:reprioritise", "/jobs/{job_id}/explain", "/jobs/{job_id}/events"),
        *("/jobs/{job_id}/attempts", "/jobs/{job_id}/assignments", "/jobs/{job_id}/logs"),
        *("/queues", "/queues/{name}", "/queues/{name}:pause", "/queues/{name}:resume"),
        *("/cohorts", "/cohorts/{name}", "/flavors", "/flavors/{name}", "/definitions"),
        *("/priority-classes", "/priority-classes/{name}", "/queues/{name}/order"),
        *("/queues/{name}/shares", "/shares", "/jobs/{job_id}:top"),
        *("/nodes", "/nodes/{name}", "/nodes/{name}:cordon", "/nodes/{name}:uncordon"),
        *("/devices", "/devices/{device_id}", "/devices/{device_id}/history"),
        *("/device-types", "/device-types/{name}"),
        *("/fragmentation", "/events", "/whoami"),
        *("/healthz", "/readyz", "/metrics"),
    }
    assert paths == promised
