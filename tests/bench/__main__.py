"""Runs benchmark programs: all of them, or those named (`submit decisions` or `submit,decisions`).

A program is a module of this folder with `run()`, which gives figures. One JSON line a figure goes
to standard output, everything else to standard error. The exit code is 1 when a program broke; a
missed target is said, and does not fail the run, since machines differ.
"""

import importlib
import pkgutil
import sys
from collections.abc import Sequence
from types import ModuleType

import tests.bench
from tests.bench.figures import Figure


def programs() -> dict[str, ModuleType]:
    """Give every program by name."""
    found = {}
    for info in pkgutil.iter_modules(tests.bench.__path__):
        if not info.name.startswith("_"):
            module = importlib.import_module(f"tests.bench.{info.name}")
            if hasattr(module, "run"):
                found[info.name] = module
    return found


def main(arguments: Sequence[str]) -> int:
    """Run and print; gives the exit code."""
    known = programs()
    wanted = [name for argument in arguments for name in argument.split(",") if name]
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    for name in wanted or sorted(known):
        print(f"--- {name}", file=sys.stderr, flush=True)
        for figure in known[name].run():
            print(figure.line(), flush=True)
            if figure.target is not None and _is_missed(figure.value, figure):
                text = f"!!! {figure.name}: {figure.value:.4g}, target {figure.target:g}"
                print(text, file=sys.stderr, flush=True)
    return 0


def _is_missed(value: float, figure: Figure) -> bool:
    target = figure.target or 0.0
    return value < target if figure.higher_is_better else value > target


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
