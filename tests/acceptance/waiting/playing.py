"""Plays a scene with the real command line against a real server, and keeps what was printed."""

import io
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gateway.cli.app import run
from gateway.core.vocabulary import JobState
from gateway.db.engine import open_database
from gateway.schemas.views import ExplainView
from tests.acceptance.conftest import Served, serving
from tests.acceptance.waiting.scenes import CYCLE, FILES, GONE, RUNNING, Scene
from tests.service_world import a_world

WIDTH = "100"
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_AGE = re.compile(r"\b\d+[smhd] ago")
CALLERS = {"$": "anna", "#": "root"}


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a scene."""

    printed: str
    """By `gateway explain`; ids and ages, which differ from run to run, made the same."""
    answer: ExplainView


def play(scene: Scene, folder: Path, template: Path) -> Played:
    """Set a scene up in an empty folder, on a copy of a migrated database, and ask why it waits."""
    for name, fields in FILES.items():
        job: dict[str, Any] = {"name": "job", "image": "example/train:1", "command": ["train"]}
        (folder / name).write_text(yaml.safe_dump({**job, **fields}))
    path = folder / "gateway.db"
    shutil.copy(template, path)
    database = open_database(f"sqlite:///{path}")
    try:
        with serving(a_world(database, scene.fleet)) as served:
            for step in scene.steps:
                _take(served, step, folder)
            printed = command(served, f"$ gateway explain {scene.job}", folder)
            (handle,) = served.sdk().jobs.list(name=scene.job)
            return Played(same_each_time(printed), handle.explain())
    finally:
        database.close()


def _take(served: Served, step: str, folder: Path) -> None:
    word, _, name = step.partition(" ")
    if word in CALLERS:
        command(served, step, folder)
    elif word == CYCLE:
        served.world.decide()
    else:
        (handle,) = served.sdk().jobs.list(name=name)
        states = {RUNNING: JobState.RUNNING, GONE: JobState.CANCELLED}
        served.world.until(handle.id, states[word])


def command(served: Served, line: str, folder: Path) -> str:
    """Run one command line and give what it printed; AssertionError when it failed."""
    caller, words = CALLERS[line[0]], shlex.split(line)[2:]
    arguments = [str(folder / word) if word in FILES else word for word in words]
    printed, told = io.StringIO(), io.StringIO()
    with _environment(served, caller), redirect_stdout(printed), redirect_stderr(told):
        code = run(arguments)
    assert code == 0, f"{line}: {told.getvalue()}"
    return printed.getvalue()


@contextmanager
def _environment(served: Served, caller: str) -> Iterator[None]:
    values = {
        "TRAINING_GATEWAY_URL": served.url,
        "TRAINING_GATEWAY_TOKEN": caller,
        "COLUMNS": WIDTH,
        "NO_COLOR": "1",
    }
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def same_each_time(text: str) -> str:
    """Give a text with one id and one age in the place of all."""
    return _AGE.sub("0s ago", _ID.sub("0190b1c4-9d2e-7a63-8f05-3c1d2e4b5a69", text))
