"""The wheel as a user gets it: installed into an empty environment, it runs a gateway."""

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel once."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT],
        check=True,
        capture_output=True,
    )
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the interpreter of an empty environment with the wheel and its server extra."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    interpreter = folder / "bin" / "python"
    constraints = ROOT / "constraints" / "development.txt"
    subprocess.run(
        [
            *(interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("-c", constraints, f"{wheel}[server]"),
        ],
        check=True,
        capture_output=True,
    )
    return interpreter


def test_the_wheel_carries_migrations_and_examples(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "gateway/_migrations/env.py" in names
    assert any(name.startswith("gateway/_migrations/versions/0001") for name in names)
    assert "gateway/examples/digits/digits.yaml" in names
    assert "gateway/py.typed" in names
    assert not any(name.startswith("tests/") for name in names)


def test_the_installed_wheel_runs_a_gateway_and_a_job(python: Path, tmp_path: Path) -> None:
    command = [str(python), "-m", "gateway", "dev", "--port", "0", "--state-dir", str(tmp_path)]
    environment = {**os.environ, "TRAINING_GATEWAY_STATE_DIR": str(tmp_path)}
    server = subprocess.Popen(command, cwd=tmp_path, env=environment)
    try:
        context = wait_for_context(tmp_path / "context.json", server)
        assert context["url"].startswith("http://127.0.0.1:")
        example = next(python.parent.parent.rglob("examples/digits/digits.yaml"))
        done = subprocess.run(
            [python, "-m", "gateway", "submit", example, "--watch"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "accuracy" in done.stdout
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=30) == 0


def wait_for_context(file: Path, server: "subprocess.Popen[bytes]") -> dict[str, str]:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert server.poll() is None, "the gateway ended"
        if file.exists():
            context: dict[str, str] = json.loads(file.read_text())
            return context
        time.sleep(0.05)
    raise AssertionError("the gateway did not start in time")
