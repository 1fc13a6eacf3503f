"""What benchmarks print: one JSON line a figure, medians with their spread, misses told."""

import json
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from tests.bench import __main__ as program
from tests.bench.figures import Figure, median_figure


def test_a_figure_is_one_line_with_its_peer_spread_and_machine() -> None:
    figure = median_figure("x.y", [3.0, 1.0, 2.00049], "jobs/s", peer="echo", peer_value=4.0)
    line = json.loads(figure.line())
    assert "\n" not in figure.line()
    assert (line["name"], line["value"], line["spread"]) == ("x.y", 2.0, [1.0, 3.0])
    assert (line["peer"], line["peer_value"], line["higher_is_better"]) == ("echo", 4.0, True)
    assert line["machine"]["disk_syncs_per_second"] > 0


def test_unknown_programs_are_refused_with_the_known_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert program.main(["submit,nonsense"]) == 2
    told = capsys.readouterr().err
    assert "nonsense" in told
    assert "submit" in told


def test_a_missed_target_is_told_and_does_not_fail_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run() -> Iterator[Figure]:
        yield Figure(name="a.fast", value=0.5, unit="1", target=0.6)
        yield Figure(name="a.slow", value=0.5, unit="s", target=0.6, higher_is_better=False)

    monkeypatch.setattr(program, "programs", lambda: {"a": SimpleNamespace(run=run)})
    assert program.main(["a"]) == 0
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 2
    assert [line for line in printed.err.splitlines() if line.startswith("!!!")] == [
        "!!! a.fast: 0.5, target 0.6"
    ]
