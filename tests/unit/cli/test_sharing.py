"""How `gateway share` draws the tree: bars of one length, figures beside them, 80 columns."""

from typing import Any

import pytest

from gateway.cli.sharing import BAR, WIDTH
from tests.unit.cli.fake_session import Terminal
from tests.unit.sdk.fake_gateway import ok


def a_row(**changes: Any) -> dict[str, Any]:
    values = {"flavor": "h100", "resource": "gpu", "nominal": 8, "subtree": 8, "used": 4}
    return {**values, "borrowed": 0, "available": 4, "entitlement": None, **changes}


def a_node(*rows: dict[str, Any], **changes: Any) -> dict[str, Any]:
    values = {"name": "lab", "kind": "cohort", "parent": None, "depth": 0, "weight": 1}
    return {**values, "share": 0.0, "resource": "", "rows": rows, **changes}


def drawn(terminal: Terminal, *nodes: dict[str, Any]) -> list[str]:
    ran = terminal("share", answers=(ok({"nodes": nodes}),))
    assert ran.code == 0, ran.err
    lines: list[str] = ran.out.splitlines()
    return lines


def test_every_node_has_its_weight_and_share(terminal: Terminal) -> None:
    leaf = a_node(
        a_row(), name="research", kind="queue", depth=1, weight=3, share=0.125, resource="gpu"
    )
    first, second, _ = drawn(terminal, a_node(), leaf)
    assert first == f"{'lab (cohort)':<42} weight 1, share 0"
    assert second == f"{'  research (queue)':<42} weight 3, share 0.125 by gpu"


@pytest.mark.parametrize(
    ("row", "bar", "figures"),
    [
        (a_row(used=0), "." * BAR, "0/8, entitled no limit"),
        (a_row(used=4), "#" * 11 + "." * 11, "4/8, entitled no limit"),
        (a_row(used=8, entitlement=8), "#" * 21 + "|", "8/8, entitled 8"),
        (a_row(used=16, borrowed=8), "#" * 11 + "+" * 11, "16/8 +8, entitled no limit"),
        (a_row(used=0, entitlement=16), "." * 21 + "|", "0/8, entitled 16"),
        (a_row(subtree=None, used=3), "#" * BAR, "3/no limit, entitled no limit"),
        (a_row(subtree=0, used=0), "." * BAR, "0/0, entitled no limit"),
        (a_row(resource="memory", subtree=2**34, used=2**33), "#" * 11 + "." * 11, "8Gi/16Gi"),
    ],
)
def test_a_bar_tells_used_borrowed_and_entitled(
    terminal: Terminal, row: dict[str, Any], bar: str, figures: str
) -> None:
    _, line = drawn(terminal, a_node(row))
    assert f"[{bar}] {figures}" in line
    assert line.startswith(f"  h100/{row['resource']}")


def test_no_line_is_wider_than_a_terminal(terminal: Terminal) -> None:
    row = a_row(flavor="f" * 63, resource="memory", subtree=2**50, used=2**49, entitlement=2**48)
    assert max(map(len, drawn(terminal, a_node(row, name="n" * 63, depth=9)))) <= WIDTH


def test_data_is_the_whole_tree_of_one_queue(terminal: Terminal) -> None:
    ran = terminal("share", "research", "-o", "json", answers=(ok({"nodes": [a_node(a_row())]}),))
    assert '"entitlement": null' in ran.out
    assert [request.url.path for request in ran.seen] == ["/api/v1/queues/research/shares"]


def test_without_quota_there_is_nothing_to_draw(terminal: Terminal) -> None:
    ran = terminal("share", answers=(ok({"nodes": [a_node()]}),))
    assert ran.err == "no queue has quota; everything is shared without limits\n"
