"""Each numbered scenario of the peers is shown, tested, or missing for a reason that is named."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.scenarios.devices.reading import read_scenarios
from tests.scenarios.reading import scenarios_in

FOLDER = Path(__file__).parent
TESTS = FOLDER.parent
LEDGER: dict[str, dict[str, Any]] = yaml.safe_load(
    (FOLDER / "peers" / "ledger.yaml").read_text("utf-8")
)
COUNTS = {"K": 41, "D": 35, "N": 6, "S": 12, "A": 15}
FEATURES = {
    "designated devices",
    "elastic gangs",
    "node provisioning",
    "preemption",
    "replacement of a failed node",
    "shared devices",
}


def scenario_names() -> Iterator[str]:
    for folder in (FOLDER, FOLDER / "figures", FOLDER / "filling"):
        yield from (entry["scenario"] for _, entry in scenarios_in(folder))
    yield from (each.name for each in read_scenarios())


def names_of_tests() -> set[str]:
    texts = (file.read_text("utf-8") for file in TESTS.rglob("*.py"))
    return {name for text in texts for name in re.findall(r"def (test_\w+)", text)}


def test_no_number_is_left_out_and_each_has_one_answer() -> None:
    numbers = [f"{letter}{n}" for letter, count in COUNTS.items() for n in range(1, count + 1)]
    assert list(LEDGER) == numbers
    assert all(len(answer) == 1 for answer in LEDGER.values())


def test_what_is_shown_is_a_scenario() -> None:
    named = {name for answer in LEDGER.values() for name in answer.get("shown", ())}
    assert named <= set(scenario_names())


def test_what_is_tested_has_its_test() -> None:
    named = {answer["tested"] for answer in LEDGER.values() if "tested" in answer}
    assert named <= names_of_tests()


def test_what_is_missing_waits_for_a_known_feature() -> None:
    named = {answer["missing"] for answer in LEDGER.values() if "missing" in answer}
    assert named == FEATURES
