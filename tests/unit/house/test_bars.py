"""The bars of the house style that a machine can check; each test names the bar it holds."""

import ast
import io
import re
import statistics
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from radon.complexity import cc_visit

ROOT = Path(__file__).resolve().parents[3]
PRODUCT = ("gateway", "pipelines", "migrations")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def sources(*folders: str) -> tuple[tuple[Path, str], ...]:
    files = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return tuple((path, path.read_text()) for path in files if "_migrations" not in path.parts)


@cache
def functions(*folders: str) -> tuple[tuple[Path, Function], ...]:
    return tuple(
        (path, node)
        for path, text in sources(*folders)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, Function)
    )


def quantile(values: list[int], share: float) -> int:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def length(node: Function) -> int:
    """Lines of a function without its docstring."""
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    if ast.get_docstring(node):
        lines -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
    return lines


def comment_lines(text: str) -> int:
    """Lines that hold a comment, alone or behind code."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return len({token.start[0] for token in tokens if token.type == tokenize.COMMENT})


def lines(text: str) -> int:
    """Lines that are not blank."""
    return sum(1 for line in text.splitlines() if line.strip())


def prose_lines(text: str) -> int:
    """Lines of strings that stand alone: docstrings and the notes below enum members."""
    return sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def test_files_are_short() -> None:
    lengths = {path: text.count("\n") for path, text in sources(*PRODUCT)}
    too_long = [str(path) for path, lines in lengths.items() if lines > 500]
    assert not too_long
    assert statistics.median(lengths.values()) <= 150
    assert quantile(list(lengths.values()), 0.9) <= 350


def test_functions_are_short() -> None:
    lengths = [length(node) for _, node in functions(*PRODUCT)]
    too_long = [f"{p.name}:{f.name}" for p, f in functions(*PRODUCT) if length(f) > 60]
    assert not too_long
    assert statistics.median(lengths) <= 10
    assert quantile(lengths, 0.9) <= 35


def test_functions_are_simple() -> None:
    blocks = [block for _, text in sources(*PRODUCT) for block in cc_visit(text)]
    plain = [block for block in blocks if block.letter in {"F", "M"}]
    worst = [f"{block.name}: {block.complexity}" for block in plain if block.complexity > 20]
    assert not worst, "rank D or worse"
    assert statistics.mean(block.complexity for block in blocks) <= 2.5


def test_functions_take_few_parameters() -> None:
    counts = [
        len(node.args.posonlyargs) + len(node.args.args) + len(node.args.kwonlyargs)
        for path, node in functions(*PRODUCT)
        if "cli" not in path.parts  # a command has one parameter for each option
    ]
    assert quantile(counts, 0.9) <= 4


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path, text in sources(*PRODUCT)
        if not ast.get_docstring(ast.parse(text))
    ]
    assert not silent


def test_public_functions_are_documented() -> None:
    public = [node for _, node in functions(*PRODUCT) if not node.name.startswith("_")]
    documented = [node for node in public if ast.get_docstring(node)]
    assert len(documented) / len(public) >= 0.9


def test_comments_are_neither_missing_nor_noise() -> None:
    comments = sum(comment_lines(text) for _, text in sources(*PRODUCT))
    assert 0.04 <= comments / sum(lines(text) for _, text in sources(*PRODUCT)) <= 0.12


def test_type_ignores_are_rare_and_name_their_code() -> None:
    every = [line for _, text in sources(*PRODUCT) for line in text.splitlines()]
    ignores = [line for line in every if "type: ignore" in line]
    assert all(re.search(r"type: ignore\[[\w, -]+\]", line) for line in ignores)
    assert len(ignores) <= max(1, len(every) / 1000)


def test_tests_are_somewhat_longer_than_the_product() -> None:
    product = sum(lines(text) - prose_lines(text) for _, text in sources(*PRODUCT))
    tests = sum(lines(text) - prose_lines(text) for _, text in sources("tests"))
    assert 1.2 <= tests / product <= 2.0


def test_test_functions_are_short() -> None:
    too_long = [
        f"{path.name}:{node.name} ({length(node)})"
        for path, node in functions("tests")
        if node.name.startswith("test_") and length(node) > 40
    ]
    assert not too_long


def test_test_files_are_short() -> None:
    too_long = [p.name for p, text in sources("tests") if text.count("\n") > 400]
    assert not too_long


def test_mocks_are_rare() -> None:
    pattern = re.compile(r"\b(?:Mock|MagicMock|patch|monkeypatch\.setattr)\(")
    uses = [path.name for path, text in sources("tests") for _ in pattern.findall(text)]
    assert len(uses) <= 20


FORBIDDEN_NAMES = {"utils", "helpers", "common", "manager", "util", "misc"}


def module_names() -> Iterator[str]:
    for path, _ in sources(*PRODUCT):
        yield path.stem
        yield path.parent.name


def test_no_module_is_named_after_nothing() -> None:
    assert not FORBIDDEN_NAMES & set(module_names())


@pytest.mark.parametrize("pattern", [r"except Exception", r"except BaseException", r"except:"])
def test_bare_excepts_stand_only_in_loops_that_must_go_on(pattern: str) -> None:
    allowed = {"ticker", "service"}
    found = [
        str(path.relative_to(ROOT))
        for path, text in sources(*PRODUCT)
        if re.search(pattern, text) and not allowed & set(path.parts)
    ]
    assert not found
