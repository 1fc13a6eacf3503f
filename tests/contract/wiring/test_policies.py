"""Policies that other distributions bring."""

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from gateway.bootstrap import register_policies
from gateway.core.policies import named
from gateway.core.policies.fairness import FAIRNESS, Candidate
from gateway.core.policies.ordering import ORDERING
from gateway.core.policies.placement import PLACEMENT
from gateway.core.queues.definitions import Queue
from gateway.core.queues.tree import QuotaTree
from gateway.errors import StartupRefused

MODULE = """
class OldestFirst:
    def __init__(self, tree, /):
        self.heads = {}

    def put(self, head):
        self.heads[head.queue] = head

    def withdraw(self, queue):
        self.heads.pop(queue, None)

    def refresh(self, queue):
        pass

    def best(self):
        return min(self.heads.values(), key=lambda head: head.submitted_us, default=None)


ANSWER = 42
"""


@pytest.fixture(autouse=True)
def _tables_as_before() -> Iterator[None]:
    before = [(table, dict(table)) for table in (FAIRNESS, ORDERING, PLACEMENT)]
    yield
    for table, content in before:
        table.clear()
        table.update(content)  # type: ignore[arg-type]  # each gets back its own
    sys.modules.pop("third_party_policies", None)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder in which a tiny distribution is installed."""
    (tmp_path / "third_party_policies.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def install(site: Path, entry_points: str) -> None:
    info = site / "third_party-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(dedent(entry_points))


def test_a_policy_of_another_distribution_is_found_by_its_name(site: Path) -> None:
    install(
        site,
        """
        [training_gateway.fairness]
        oldest = third_party_policies:OldestFirst
        """,
    )
    register_policies()
    register_policies()  # a second gateway in one process finds the same again
    tree = QuotaTree((Queue(name="young"), Queue(name="old")), ())
    contest = named("fairness", FAIRNESS, "oldest")(tree)
    contest.put(Candidate(queue="young", row=0, submitted_us=9, charges={}))
    contest.put(Candidate(queue="old", row=1, submitted_us=1, charges={}))
    best = contest.best()
    assert best is not None
    assert best.queue == "old"


@pytest.mark.parametrize("kind", ["fairness", "ordering", "placement"])
@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("third_party_policies:Missing", "has no attribute 'Missing'"),
        ("third_party_nowhere:Policy", "No module named 'third_party_nowhere'"),
        ("third_party_policies:ANSWER", "is no function"),
    ],
)
def test_a_policy_that_cannot_be_used_stops_the_start(
    site: Path, kind: str, value: str, words: str
) -> None:
    install(site, f"[training_gateway.{kind}]\nmine = {value}\n")
    with pytest.raises(StartupRefused, match="'mine' of third-party") as caught:
        register_policies()
    assert words in caught.value.detail
    assert caught.value.value == value


def test_a_name_that_is_taken_stops_the_start(site: Path) -> None:
    builtin = "dominant_share"
    install(site, f"[training_gateway.fairness]\n{builtin} = third_party_policies:OldestFirst\n")
    with pytest.raises(StartupRefused, match="another fairness policy 'dominant_share'"):
        register_policies()
