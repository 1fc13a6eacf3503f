"""Commands on queues, cohorts, flavors and nodes: what is read from options and files, and sent."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.cli.defining import checked, quota_words, read_quota
from gateway.cli.yaml_writing import write_yaml
from gateway.errors import InvalidInput
from gateway.manifests.yaml_text import read_yaml
from gateway.schemas.definitions import QuotaSpec
from tests.unit.cli.fake_session import Terminal
from tests.unit.sdk.fake_gateway import Answer, ok, problem

QUOTA = {"flavor": "default", "resource": "gpu", "nominal": 8}
QUEUE = {"name": "research", "version": 3, "weight": 2, "cohort": "lab", "quotas": [QUOTA]}
USED = {**QUOTA, "used": 12, "borrowed": 4, "available": 0}
FLAVOR = {"name": "h100", "version": 5, "node_labels": {"gpu": "h100", "zone": "a"}}
NODE = {
    "id": 1,
    "name": "n1",
    "machine_type": "m",
    "health": "cordoned",
    "is_present": True,
    "labels": {},
    "gpus_total": 8,
    "gpus_free": 3,
    "rdma_total": 8,
    "rdma_free": 8,
    "cpu_millis_total": 192_000,
    "cpu_millis_free": 1_500,
    "memory_bytes_total": 2**31,
    "memory_bytes_free": 2**30,
    "version": 1,
}


def page(*items: dict[str, Any]) -> Any:
    return ok({"next_cursor": "", "items": list(items)})


AMOUNTS = st.integers(0, 10**18 - 1)


@settings(deadline=None, max_examples=50)
@given(
    st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True),
    st.sampled_from(["gpu", "cpu", "nvidia.com/gpu", "rdma/ib"]),
    AMOUNTS,
    AMOUNTS | st.none(),
    AMOUNTS | st.none(),
)
def test_any_quota_row_reads_back_as_it_is_shown(
    flavor: str, resource: str, nominal: int, borrow: int | None, lend: int | None
) -> None:
    row = {"flavor": flavor, "resource": resource, "nominal": nominal}
    row |= {} if borrow is None else {"borrowing_limit": borrow}
    row |= {} if lend is None else {"lending_limit": lend}
    shown = quota_words([QuotaSpec.model_validate(row)])
    assert read_quota(shown) == row


@pytest.mark.parametrize(
    ("text", "nominal"),
    [
        ("d/gpu=0", 0),
        ("d/gpu=007", 7),
        ("d/cpu=500m", "500m"),
        ("d/memory=64Gi", "64Gi"),
        ("d/gpu=-1", "-1"),
        ("d/gpu=²", "²"),
        ("d/gpu=٣", "٣"),
        (f"d/gpu={'9' * 5000}", "9" * 5000),
    ],
)
def test_an_amount_that_is_no_plain_number_stays_text_for_the_server(
    text: str, nominal: int | str
) -> None:
    assert read_quota(text)["nominal"] == nominal


@pytest.mark.parametrize(
    "text",
    [
        *("", "=", "/", "d", "d/", "/gpu=1", "d/=1", "d/gpu", "d/gpu=", "d=1", "d/gpu=1,"),
        *("d/gpu=1,borrow", "d/gpu=1,borrow=", "d/gpu=1,Borrow=1", "d/gpu=1,=1"),
        *("d/gpu=1,borrow=1,borrow=2", "d/gpu=1,lend=1,borrow=1,lend=1", "d/gpu=1 ,steal=2"),
    ],
)
def test_a_row_with_anything_missing_unknown_or_twice_is_refused(
    terminal: Terminal, text: str
) -> None:
    ran = terminal("queue", "create", "q", "--quota", "default/cpu=1", "--quota", text)
    assert (ran.code, ran.seen) == (3, [])
    assert "FLAVOR/RESOURCE=NOMINAL[,borrow=N][,lend=N]" in ran.err
    assert "--quota default/gpu=16,borrow=8" in ran.err


@pytest.mark.parametrize(
    ("kind", "values", "pointer", "value"),
    [
        ("QueueSpec", {"name": "UPPER"}, "/name", "UPPER"),
        ("QueueSpec", {"name": "x" * 64}, "/name", "x" * 64),
        ("QueueSpec", {"name": "x", "weight": -1}, "/weight", -1),
        ("QueueSpec", {"name": "x", "quotas": [{**QUOTA, "x": 1}]}, "/quotas/0/x", "x"),
        ("CohortSpec", {"name": "x", "parent": ""}, "/parent", ""),
        ("CohortSpec", {"parent": "lab"}, "/name", None),
        ("FlavorSpec", {"name": "x", "node_labels": {"a": {}}}, "/node_labels/a", {}),
        ("DefinitionSet", {"kind": "Other"}, "/kind", "Other"),
        ("DefinitionSet", {"queues": [{"name": 5}]}, "/queues/0/name", 5),
    ],
)
def test_a_wrong_definition_is_refused_here_with_its_place(
    kind: str, values: dict[str, Any], pointer: str, value: object
) -> None:
    with pytest.raises(InvalidInput) as caught:
        checked(kind, values)
    assert (caught.value.pointer, caught.value.value) == (pointer, value)
    assert caught.value.hint


def test_a_created_queue_is_sent_whole(terminal: Terminal) -> None:
    words = ["--cohort", "lab", "--weight", "0", "--quota", "default/gpu=8,borrow=4"]
    words += ["--namespace", "a", "--namespace", "b", "--default-for", "a"]
    ran = terminal("queue", "create", "research", *words, answers=(ok(QUEUE, 201),))
    assert (ran.code, ran.err) == (0, "queue research created\n")
    (sent,) = ran.bodies
    row = {**QUOTA, "borrowing_limit": 4, "lending_limit": None}
    assert (sent["cohort"], sent["weight"], sent["quotas"]) == ("lab", 0, [row])
    assert (sent["namespaces"], sent["default_for"]) == (["a", "b"], ["a"])


@pytest.mark.parametrize(
    ("words", "stored", "changed"),
    [
        (["queue", "set", "research", "--weight", "7"], QUEUE, {"weight": 7}),
        (["queue", "set", "research", "--cohort", "other"], QUEUE, {"cohort": "other"}),
        (["queue", "set", "research", "--namespace", "a"], QUEUE, {"namespaces": ["a"]}),
        (
            ["cohort", "set", "lab", "--parent", "root"],
            {"name": "lab", "version": 3, "weight": 4, "quotas": [QUOTA]},
            {"parent": "root"},
        ),
        (
            ["flavor", "set", "h100", "--label", "gpu=b200"],
            FLAVOR,
            {"node_labels": {"gpu": "b200"}},
        ),
    ],
)
def test_what_is_not_named_stays_and_the_version_guards_the_rest(
    terminal: Terminal, words: list[str], stored: dict[str, Any], changed: dict[str, Any]
) -> None:
    ran = terminal(*words, answers=(ok(stored), ok(stored)))
    assert (ran.code, ran.err) == (0, f"{words[0]} {words[2]} changed\n")
    read, written = ran.asked
    assert written == read.replace("GET", "PUT")
    assert ran.seen[1].headers["if-match"] == f'"{stored["version"]}"'
    kept = {name: value for name, value in stored.items() if name not in {*changed, "version"}}
    rows = [{**QUOTA, "borrowing_limit": None, "lending_limit": None}]
    expected = {**kept, **({"quotas": rows} if "quotas" in kept else {}), **changed}
    assert {name: ran.bodies[0][name] for name in expected} == expected
    assert "version" not in ran.bodies[0]


def test_somebody_who_was_faster_is_not_overwritten(terminal: Terminal) -> None:
    answers = (ok(QUEUE), problem(412, "stale_version"))
    ran = terminal("queue", "set", "research", "--weight", "7", answers=answers)
    assert (ran.code, "changed" in ran.err) == (3, False)


def test_a_flavor_never_becomes_every_node_by_an_option_left_out(terminal: Terminal) -> None:
    ran = terminal("flavor", "set", "h100")
    assert (ran.code, ran.seen) == (2, [])
    assert "--label KEY=VALUE" in ran.err


@pytest.mark.parametrize("verb", ["create", "set"])
@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["gpu"], "a label is KEY=VALUE"),
        (["=h100"], "a label is KEY=VALUE"),
        ([""], "a label is KEY=VALUE"),
        (["a=1", "b"], "a label is KEY=VALUE"),
        (["a=1", "a=2"], "a label is given twice"),
    ],
)
def test_a_wrong_label_is_refused_before_anything_is_sent(
    terminal: Terminal, verb: str, labels: list[str], words: str
) -> None:
    options = [word for label in labels for word in ("--label", label)]
    ran = terminal("flavor", verb, "h100", *options)
    assert (ran.code, ran.seen) == (3, [])
    assert words in ran.err


def test_labels_may_hold_what_kubernetes_allows(terminal: Terminal) -> None:
    options = ["--label", "nvidia.com/gpu.product=H100=x", "--label", "empty="]
    ran = terminal("flavor", "create", "h100", *options, answers=(ok(FLAVOR, 201),))
    assert ran.bodies[0]["node_labels"] == {"nvidia.com/gpu.product": "H100=x", "empty": ""}


@pytest.mark.parametrize(
    ("words", "answer", "shown"),
    [
        (["queue", "ls"], page(QUEUE), "default/gpu=8"),
        (["queue", "ls", "-o", "wide"], page(QUEUE), "NAMESPACES"),
        (["queue", "ls", "-o", "name"], page(QUEUE), "research\n"),
        (["cohort", "ls"], page({"name": "lab", "version": 1, "quotas": [QUOTA]}), "default/gpu=8"),
        (["cohort", "show", "lab"], ok({"name": "lab", "version": 1}), "weight  1"),
        (["flavor", "ls"], page(FLAVOR), "gpu=h100,zone=a"),
        (["flavor", "ls"], page({"name": "default", "version": 1}), "every node"),
        (["flavor", "show", "h100"], ok(FLAVOR), "node labels  gpu=h100,zone=a"),
        (["queue", "show", "research"], ok({**QUEUE, "usage": [USED]}), "12 used of 8, 4 borrowed"),
        (["node", "ls"], page(NODE), "3/8"),
        (["node", "ls"], page(NODE), "1.5"),
        (["node", "ls"], page({**NODE, "is_present": False}), "absent"),
        (["node", "show", "n1", "-o", "json"], ok(NODE), '"gpus_free": 3'),
    ],
)
def test_each_command_shows_what_it_is_for(
    terminal: Terminal, words: list[str], answer: Answer, shown: str
) -> None:
    ran = terminal(*words, answers=(answer,))
    assert ran.code == 0, ran.err
    assert shown in ran.out


@pytest.mark.parametrize(
    ("words", "asked", "told"),
    [
        (["queue", "delete", "q"], "DELETE /queues/q", "queue q deleted\n"),
        (["cohort", "delete", "c"], "DELETE /cohorts/c", "cohort c deleted\n"),
        (["flavor", "delete", "f"], "DELETE /flavors/f", "flavor f deleted\n"),
        (
            ["node", "cordon", "n1", "--reason", "fan"],
            "POST /nodes/n1:cordon",
            "node n1: cordoned\n",
        ),
        (["node", "uncordon", "n1"], "POST /nodes/n1:uncordon", "node n1: cordoned\n"),
    ],
)
def test_each_change_is_one_request(
    terminal: Terminal, words: list[str], asked: str, told: str
) -> None:
    ran = terminal(*words, answers=(ok(NODE),))
    assert (ran.code, ran.asked, ran.err) == (0, [asked], told)
    refused = terminal(*words, answers=(problem(403, "denied"),))
    assert refused.code == 5


APPLIED = ok({"changes": ["queue research created", "flavor h100 changed"]})


def test_a_folder_is_applied_as_one_document(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "b.yml").write_text("queues:\n- name: second\n")
    (tmp_path / "a.yaml").write_text("queues:\n- name: first\n---\n---\nflavors:\n- name: f\n")
    (tmp_path / "notes.txt").write_text("queues: [")
    ran = terminal("apply", "-f", str(tmp_path), "--dry-run", answers=(APPLIED,))
    assert ran.asked == ["POST /definitions?dry_run=true"]
    assert [queue["name"] for queue in ran.bodies[0]["queues"]] == ["first", "second"]
    assert [flavor["name"] for flavor in ran.bodies[0]["flavors"]] == ["f"]
    assert ran.err == "would queue research created\nwould flavor h100 changed\n"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_json_is_applied_too(terminal: Terminal, tmp_path: Path, mark: bytes) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(mark + json.dumps({"queues": [{"name": "q"}]}).encode())
    ran = terminal("apply", "-f", str(file), answers=(APPLIED,))
    assert (ran.code, ran.bodies[0]["queues"][0]["name"]) == (0, "q")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"queues: [\n", "is no YAML: line 2"),
        (b"queues:\n- name: a\nqueues:\n- name: b\n", "the key 'queues' is given twice"),
        (b"queues:\n- name: a\n  weight: 1\n  weight: 2\n", "the key 'weight' is given twice"),
        (b"a: &a [x]\nb: &b [*a, *a, *c]\n", "has no anchor before it"),
        (b"queues: !!python/object:os.system ls\n", "is not allowed"),
        (b"- name: a\n", "a configuration is a mapping"),
        (b"just text\n", "a configuration is a mapping"),
        (b"queues: \xff\n", "cannot be read"),
        (b"queues:\n- name: a\n  weight: 2026-01-01\n", "valid integer"),
        (b"queues:\n- name: no\n", "valid string"),
        (b"queues: null\n", "valid"),
        (b"qeues: []\n", "did you mean 'queues'?"),
        (b"kind: List\n", "TrainingGatewayConfig"),
        (b"queues:\n- name: a\n  weight: .nan\n", "is no YAML"),
    ],
)
def test_a_wrong_configuration_is_refused_before_anything_is_sent(
    terminal: Terminal, tmp_path: Path, content: bytes, words: str
) -> None:
    file = tmp_path / "config.yaml"
    file.write_bytes(content)
    ran = terminal("apply", "-f", str(file))
    assert (ran.code, ran.seen) == (3, []), ran.err
    assert words in ran.err
    assert "\n  next:    " in ran.err


def test_a_missing_file_is_not_found(terminal: Terminal, tmp_path: Path) -> None:
    ran = terminal("apply", "-f", str(tmp_path / "missing"))
    assert (ran.code, "does not exist" in ran.err) == (4, True)


WORDS = ["1e3", "0o17", "017", "no", "on", "y", "null", "~", "1.5", ".inf", "2026-01-01", "10:30"]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text(max_size=12) | st.sampled_from(WORDS), max_size=5))
def test_yaml_means_the_same_to_every_reader(words: list[str]) -> None:
    clean = ["".join(letter for letter in word if letter.isprintable()) for word in words]
    data = {"words": clean, "number": 3, "nothing": None, "yes": True}
    assert read_yaml(write_yaml(data)) == [data]
    assert yaml.safe_load(write_yaml(data)) == data


def test_an_exported_document_is_applied_again_as_it_was(
    terminal: Terminal, tmp_path: Path
) -> None:
    document = {"queues": [{"name": name} for name in ("1e3", "0o17", "no", "on", "007", "null")]}
    exported = terminal("export", answers=(ok(document),))
    file = tmp_path / "config.yaml"
    file.write_text(exported.out)
    ran = terminal("apply", "-f", str(file), answers=(ok({"changes": []}),))
    assert (ran.code, ran.err) == (0, "nothing to change\n")
    assert [queue["name"] for queue in ran.bodies[0]["queues"]] == [
        queue["name"] for queue in document["queues"]
    ]
    as_json = json.loads(terminal("export", "-o", "json", answers=(ok(document),)).out)
    assert as_json == read_yaml(exported.out)[0]


@pytest.mark.parametrize("group", ["queue", "cohort"])
def test_set_without_an_option_is_refused_before_anything_is_asked(
    terminal: Terminal, group: str
) -> None:
    ran = terminal(group, "set", "research")
    assert (ran.code, ran.asked) == (2, [])
    assert "at least one option" in ran.err
