"""The pages on machines show what the product draws and accepts."""

import re
from pathlib import Path

from gateway.backends.machine_reading import GPU_KEYS, KEYS, read_machine
from tests.acceptance.topologies.page import DRAWN, PAGE, main, page

HOW_TO = PAGE.parents[1] / "how-to" / "add-a-machine-type.md"


def test_the_page_is_up_to_date(tmp_path: Path) -> None:
    assert page() == PAGE.read_text(), "run: python -m tests.acceptance.topologies.page"
    assert len(DRAWN) >= 3
    main([str(tmp_path / "page.md")])
    assert (tmp_path / "page.md").read_text() == page()


def test_the_file_of_the_how_to_is_a_machine_type() -> None:
    found = re.search(r"```yaml\n(.*?)```", HOW_TO.read_text(), re.DOTALL)

    assert found is not None
    kind = read_machine("my-board", found[1], "my-board.yaml")
    assert [slot.switch for slot in kind.topology.gpus] == [0, 1]


def test_the_how_to_names_every_field() -> None:
    told = set(re.findall(r"`(\w+)`", HOW_TO.read_text()))

    assert {*KEYS, *GPU_KEYS} <= told
