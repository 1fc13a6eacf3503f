"""Runs the test tiers one after another and says at the end what ran, what failed and what did not.

`python -m tests.tiers fast` runs what needs no server; `all` runs everything, in three
environments: the full one (this interpreter, newest Kubernetes client), one with kfp and therefore
Kubernetes client 30.1, and Python 3.13 where it can be had. A tier that did not run makes the whole
run fail, except the cluster tiers under SKIP_CLUSTER=1.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
CORE_COVERAGE = "100"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """One pytest run."""

    name: str
    paths: tuple[str, ...]
    environment: str = ""
    """Suffix of the virtual environment's folder; empty is the full cell."""
    options: tuple[str, ...] = ()
    is_cluster: bool = False
    covers_core: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one tier."""

    tier: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    trouble: str = ""


SPREAD = ("-n", "2")
"""Two workers: the machine that judges has two cores."""
FAST = (
    Tier(
        name="unit, properties, scenarios and contract",
        paths=("tests/unit", "tests/properties", "tests/scenarios", "tests/contract"),
        options=SPREAD,
    ),
)
ALL = (
    Tier(
        name="core, with branch coverage",
        paths=("tests/unit/core", "tests/properties", "tests/scenarios"),
        covers_core=True,
    ),
    Tier(
        name="optimality and packing",
        paths=("tests/optimality", "tests/packing"),
        options=SPREAD,
    ),
    Tier(name="unit and contract", paths=("tests/unit", "tests/contract"), options=SPREAD),
    Tier(
        name="migration and integration",
        paths=("tests/migration", "tests/integration"),
        options=SPREAD,
    ),
    Tier(name="acceptance", paths=("tests/acceptance",), options=SPREAD),
    Tier(name="cluster", paths=("tests/cluster",), is_cluster=True),
    Tier(name="pipelines (kfp)", paths=("tests/pipelines",), environment="kfp"),
    Tier(
        name="cluster conformance, Kubernetes client 30.1",
        paths=("tests/cluster/test_kubeflow_conformance.py",),
        environment="kfp",
        is_cluster=True,
    ),
    Tier(
        name="unit and contract, Python 3.13",
        paths=("tests/unit", "tests/contract"),
        environment="py313",
        options=SPREAD,
    ),
)


def main(arguments: list[str]) -> int:
    """Run the named set and give the exit code."""
    tiers = {"fast": FAST, "all": ALL}.get(arguments[0] if arguments else "")
    if tiers is None:
        print("usage: python -m tests.tiers fast|all")
        return 2
    outcomes = [run_tier(tier) for tier in tiers]
    return report(outcomes)


def run_tier(tier: Tier) -> Outcome:
    """Run one tier, loudly."""
    print(f"\n=== {tier.name} ===", flush=True)
    if tier.is_cluster and os.environ.get("SKIP_CLUSTER") == "1":
        return Outcome(tier=tier.name, trouble="SKIPPED because SKIP_CLUSTER=1")
    python = interpreter(tier.environment)
    if python is None:
        return Outcome(tier=tier.name, trouble=f"NOT RUN: no environment {tier.environment!r}")
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        code = subprocess.run(command(tier, python, results), cwd=ROOT, check=False).returncode
        counts = read_counts(results)
    trouble = "" if code == 0 else f"FAILED with exit code {code}"
    if code == 0 and tier.covers_core:
        trouble = check_coverage(python)
    return Outcome(tier=tier.name, seconds=time.monotonic() - started, trouble=trouble, **counts)


def command(tier: Tier, python: Path, results: Path) -> list[str]:
    """Give the command line of one tier."""
    start = [str(python), "-m"]
    if tier.covers_core:
        start += ["coverage", "run", "-m"]
    return [*start, "pytest", "-q", f"--junitxml={results}", *tier.options, *tier.paths]


def check_coverage(python: Path) -> str:
    """Say what is wrong with the core's branch coverage; empty when nothing is."""
    code = subprocess.run(
        [
            str(python),
            "-m",
            "coverage",
            "report",
            f"--fail-under={CORE_COVERAGE}",
            "--skip-covered",
        ],
        cwd=ROOT,
        check=False,
    ).returncode
    return "" if code == 0 else f"branch coverage of gateway/core is below {CORE_COVERAGE} %"


def read_counts(results: Path) -> dict[str, int]:
    """Count passed, failed and skipped tests in a JUnit file."""
    if not results.exists():
        return {}
    suites = ET.parse(results).getroot().iter("testsuite")  # noqa: S314 - our own file
    total = failed = skipped = 0
    for suite in suites:
        total += int(suite.get("tests", 0))
        failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped += int(suite.get("skipped", 0))
    return {"passed": total - failed - skipped, "failed": failed, "skipped": skipped}


def interpreter(environment: str) -> Path | None:
    """Give the Python of an environment, making it when needed; None where it cannot be had."""
    if not environment:
        return Path(sys.executable)
    folder = ROOT / f".venv-{environment}"
    python = folder / "bin" / "python"
    stamp = folder / ".ready"
    if stamp.exists() and stamp.stat().st_mtime > (ROOT / "pyproject.toml").stat().st_mtime:
        return python
    base = {"kfp": sys.executable, "py313": find_python("3.13")}[environment]
    if base is None or not build_environment(environment, base, folder):
        return None
    stamp.touch()
    return python


def build_environment(environment: str, base: str, folder: Path) -> bool:
    """Install one environment; True when it worked."""
    extras, constraints = {
        "kfp": ("dev,pipelines", ["-c", "constraints/pipelines.txt"]),
        "py313": ("dev", ["-c", "constraints/development.txt"]),
    }[environment]
    print(f"preparing {folder.name} with {base}", flush=True)
    steps = (
        [base, "-m", "venv", str(folder)],
        [
            *(str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"),
            *("--disable-pip-version-check", *constraints, "-e", f".[{extras}]"),
        ],
    )
    return all(subprocess.run(step, cwd=ROOT, check=False).returncode == 0 for step in steps)


def find_python(version: str) -> str | None:
    """Look for an interpreter of this version on PATH and among pyenv's."""
    found = shutil.which(f"python{version}")
    if (
        found
        and subprocess.run([found, "-c", ""], check=False, capture_output=True).returncode == 0
    ):
        return found
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = sorted(versions.glob(f"{version}.*/bin/python{version}"))
    return str(candidates[-1]) if candidates else None


def report(outcomes: list[Outcome]) -> int:
    """Print the closing table; 0 only when every tier ran and passed."""
    print("\n=== what ran ===")
    for outcome in outcomes:
        print(
            f"{outcome.tier:46} {outcome.passed:5} passed {outcome.failed:4} failed "
            f"{outcome.skipped:4} skipped {outcome.seconds:7.1f} s  {outcome.trouble}"
        )
    forgiven = [outcome for outcome in outcomes if outcome.trouble.startswith("SKIPPED")]
    bad = [outcome for outcome in outcomes if outcome.trouble and outcome not in forgiven]
    silent = [outcome for outcome in outcomes if not outcome.trouble and not outcome.passed]
    for outcome in (*forgiven, *silent):
        print(f"!!! {outcome.tier}: {outcome.trouble or 'no test ran'}")
    passed, failed, skipped = (
        sum(getattr(outcome, field) for outcome in outcomes)
        for field in ("passed", "failed", "skipped")
    )
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if bad or silent else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
