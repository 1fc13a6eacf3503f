"""The command line as a program of its own: standard input, pipes, signals, environment."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from gateway.core.vocabulary import JobState
from tests.acceptance.api.bodies import a_manifest
from tests.acceptance.conftest import Served

SHORT = "name: train\nnamespace: team-a\nimage: example/train:1\ncommand: [train]\n"


def environment(served: Served, caller: str = "anna") -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if "TRAINING_GATEWAY" not in name}
    names = {"TRAINING_GATEWAY_URL": served.url, "TRAINING_GATEWAY_TOKEN": caller}
    return {**kept, **names, "COLUMNS": "200"}


def program(
    served: Served, *words: str, text: str = "", caller: str = "anna"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gateway", *words],
        input=text,
        env=environment(served, caller),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_standard_input_is_submitted_and_its_id_printed_alone(served: Served) -> None:
    ran = program(served, "submit", "-", text=SHORT)
    assert ran.returncode == 0, ran.stderr
    job = served.sdk().jobs.get(ran.stdout.strip())
    assert (job.name, job.view.user) == ("train", "anna")
    broken = program(served, "submit", "-", text="name: [")
    assert (broken.returncode, broken.stdout) == (3, "")
    assert "Traceback" not in broken.stderr


def test_standard_input_is_applied(served: Served) -> None:
    ran = program(served, "apply", "-f", "-", text="queues:\n- name: research\n", caller="root")
    assert ran.returncode == 0, ran.stderr
    assert "research" in ran.stderr
    assert served.sdk().queues.get("research").name == "research"


def test_a_reader_that_leaves_early_is_no_traceback(served: Served) -> None:
    served.sdk().batch([a_manifest(f"job-{number}", gpu=1) for number in range(200)])
    with subprocess.Popen(
        [sys.executable, "-m", "gateway", "ls", "--limit", "200", "-o", "json"],
        env=environment(served),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.read(1) == b"["
        child.stdout.close()
        told = child.stderr.read().decode()
    assert "Traceback" not in told
    assert "BrokenPipeError" not in told


def test_ctrl_c_while_lines_come_detaches_and_leaves_the_job_alone(served: Served) -> None:
    job = served.sdk().submit(a_manifest(gpu=1))
    served.world.until(job.id, JobState.RUNNING)
    # A shell starts what runs in its background with SIGINT ignored, and children inherit that.
    heeding = ("env", "--default-signal=INT")
    with subprocess.Popen(
        [*heeding, sys.executable, "-m", "gateway", "logs", "-f", job.id],
        env=environment(served),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline()
        child.send_signal(signal.SIGINT)
        told = child.stderr.read().decode()
    assert child.returncode == 130
    assert told == "detached; the job goes on\n"
    assert job.refresh().state is JobState.RUNNING


WRONG = (
    ("TRAINING_GATEWAY_URL", "http://[::1", 3, "is no address of a gateway"),
    ("TRAINING_GATEWAY_TOKEN", "tökén", 5, "no header can carry"),
)


def test_a_wrong_environment_is_told_in_words(served: Served, tmp_path: Path) -> None:
    for variable, value, code, words in WRONG:
        ran = subprocess.run(
            [sys.executable, "-m", "gateway", "ls"],
            env={**environment(served), "HOME": str(tmp_path), variable: value},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (ran.returncode, ran.stdout) == (code, ""), value
        assert words in ran.stderr
        assert "next:" in ran.stderr
        assert "Traceback" not in ran.stderr
