"""Commands that prepare a server, what is common to all commands, and the map of devices."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway import __version__
from gateway.api.tokens import TokenFile
from gateway.cli import exits
from gateway.cli.fleet import LETTERS, map_lines, state_of
from gateway.cli.terminal import age, clean, cores, gibibytes
from gateway.core.vocabulary import DeviceKind
from gateway.errors import Denied, GatewayError, InvalidInput, Unauthenticated
from gateway.schemas.views import DeviceView, HolderView
from tests.unit.cli.fake_session import Terminal
from tests.unit.cli.test_words import a_device
from tests.unit.sdk.fake_gateway import ok, problem


def add_token(terminal: Terminal, file: Path, *words: str) -> str:
    ran = terminal("serve", "--token-file", str(file), "--new-token", *words)
    assert ran.code == 0, ran.err
    assert ran.err == f"added to {file}; the token is shown this once:\n"
    return ran.out.strip()


def test_a_new_token_lets_its_owner_in_and_is_kept_as_digest_only(
    terminal: Terminal, tmp_path: Path
) -> None:
    file = tmp_path / "tokens"
    first = add_token(terminal, file, "anna", "--namespaces", "team-a,team-b")
    second = add_token(terminal, file, "root", "--role", "admin", "--namespaces", "*")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert first not in file.read_text()
    tokens = TokenFile(file)
    anna, root = tokens.authenticate(first), tokens.authenticate(second)
    assert (anna.name, anna.namespaces, anna.is_admin) == ("anna", ("team-a", "team-b"), False)
    assert (root.name, root.namespaces, root.is_admin) == ("root", ("*",), True)


def test_a_last_line_that_an_editor_left_open_is_not_glued_to_the_new_one(
    terminal: Terminal, tmp_path: Path
) -> None:
    file = tmp_path / "tokens"
    first = add_token(terminal, file, "anna")
    file.write_text("# who may come in\n" + file.read_text().rstrip("\n"))
    second = add_token(terminal, file, "ben")
    tokens = TokenFile(file)
    assert [tokens.authenticate(each).name for each in (first, second)] == ["anna", "ben"]


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["anna", "--role", "king"], "--role"),
        (["anna", "--role", "Admin"], "--role"),
        (["anna b"], "--new-token"),
        (["#anna"], "--new-token"),
        ([""], "--new-token"),
        (["anna\n"], "--new-token"),
        (["anna", "--namespaces", ""], "--namespaces"),
        (["anna", "--namespaces", "a, b"], "--namespaces"),
        (["anna", "--namespaces", "a,,b"], "--namespaces"),
        (["anna", "--namespaces", ","], "--namespaces"),
    ],
)
def test_words_that_would_break_the_token_file_are_refused_and_not_written(
    terminal: Terminal, tmp_path: Path, words: list[str], option: str
) -> None:
    file = tmp_path / "tokens"
    ran = terminal("serve", "--token-file", str(file), "--new-token", *words)
    assert (ran.code, ran.out) == (3, "")
    assert f"at:      {option}" in ran.err
    assert not file.exists()


def test_a_token_needs_a_file(terminal: Terminal) -> None:
    ran = terminal("serve", "--new-token", "anna")
    assert (ran.code, "give --token-file FILE" in ran.err) == (4, True)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("LISTEN_PORT", "abc"),
        ("LISTEN_PORT", "65536"),
        ("CYCLE_SECONDS", "0"),
        ("BACKEND", "slurm"),
        ("KUEUE_LABEL", "keep"),
        ("ALLOW_UNSAFE_TEMPLATES", "perhaps"),
    ],
)
@pytest.mark.parametrize("command", [["serve"], ["db", "check"], ["doctor"]])
def test_a_wrong_setting_is_told_by_the_name_of_its_variable(
    terminal: Terminal,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
    command: list[str],
) -> None:
    monkeypatch.setenv(f"TRAINING_GATEWAY_{variable}", value)
    ran = terminal(*command)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith(f"error: TRAINING_GATEWAY_{variable}: Input should be ")
    assert "Traceback" not in ran.err


def test_settings_that_do_not_go_together_are_told_in_words(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINING_GATEWAY_LEASE_SECONDS", "3")
    ran = terminal("serve")
    assert (ran.code, "lease_seconds=3.0 is too short" in ran.err) == (3, True)


def test_a_password_in_a_wrong_setting_is_not_shown(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINING_GATEWAY_DATABASE_URL", "postgresql://u:hunter2@h/d")
    ran = terminal("serve", "--port", "-1")
    assert ran.code == 3
    assert "LISTEN_PORT" in ran.err
    assert "hunter2" not in ran.err


def test_a_database_is_made_checked_and_copied(terminal: Terminal, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'gateway.db'}"
    made = terminal("db", "upgrade", "--url", url)
    assert (made.code, made.err.split(" revision ")[0]) == (0, "the database is at")
    revision = made.err.split()[-1]
    again = terminal("db", "upgrade", "--url", url)
    assert again.err.split()[-1] == revision
    assert terminal("db", "check", "--url", url).err == f"fine: revision {revision}\n"
    copy = tmp_path / "copy.db"
    assert terminal("db", "backup", str(copy), "--url", url).err == f"written to {copy}\n"
    assert terminal("db", "check", "--url", f"sqlite:///{copy}").code == 0


def test_a_database_without_a_schema_is_refused_with_the_command(
    terminal: Terminal, tmp_path: Path
) -> None:
    ran = terminal("db", "check", "--url", f"sqlite:///{tmp_path / 'empty.db'}")
    assert (ran.code, "gateway db upgrade" in ran.err) == (3, True)


def test_the_version_is_printed_alone(terminal: Terminal) -> None:
    ran = terminal("--version")
    assert (ran.code, ran.out) == (0, f"{__version__}\n")


@pytest.mark.parametrize(
    "words", [["--timeout", "x", "ls"], ["ls", "-o", "xml"], ["ls", "--nothing"], ["queue", "x"]]
)
def test_a_slip_of_the_keyboard_exits_with_two_and_asks_nobody(
    terminal: Terminal, words: list[str]
) -> None:
    ran = terminal(*words)
    assert (ran.code, ran.seen) == (2, [])
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_names_the_command_and_leaves_no_variable(
    terminal: Terminal, shell: str
) -> None:
    ran = terminal("completion", shell)
    assert (ran.code, "gateway" in ran.out) == (0, True)
    assert "_GATEWAY_COMPLETE" not in os.environ


def test_who_one_is_stands_on_standard_error(terminal: Terminal) -> None:
    told = {"name": "anna", "role": "user", "namespaces": ["team-a", "team-b"]}
    ran = terminal("whoami", answers=(ok(told),))
    assert (ran.out, ran.err) == ("", "anna, user, namespaces: team-a, team-b\n")


def test_a_refusal_is_told_line_by_line_without_what_is_not_there(terminal: Terminal) -> None:
    facts = {"pointer": "/queue", "value": 0, "allowed": ["a", "b"], "hint": "did you mean 'a'?"}
    full = terminal("queue", "ls", answers=(problem(422, "invalid", **facts),))
    assert full.err.splitlines() == [
        "error: invalid it is",
        "  at:      /queue",
        "  value:   0",
        "  allowed: a, b",
        "  next:    did you mean 'a'?",
    ]
    bare = terminal("queue", "ls", answers=(problem(422, "invalid"),))
    assert bare.err == "error: invalid it is\n"


@pytest.mark.parametrize("kind", [Unauthenticated, Denied])
def test_who_may_not_gets_one_exit_code_whatever_the_reason(kind: type[GatewayError]) -> None:
    assert exits.exit_code(kind("no")) == exits.DENIED == 5


def test_an_error_with_markup_of_others_is_printed_as_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    exits.tell(InvalidInput("[bold]x[/nothing]", value="\x1b]0;title\x07", hint="a\tb"))
    told = capsys.readouterr().err
    assert "error: [bold]x[/nothing]" in told
    assert "\x1b]0" not in told
    assert "\ufffd]0;title\ufffd" in told


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=60))
def test_cleaned_text_holds_nothing_that_moves_the_cursor_and_is_stable(words: str) -> None:
    cleaned = clean(words)
    assert len(cleaned) == len(words)
    assert clean(cleaned) == cleaned
    control = {chr(code) for code in (*range(9), *range(11, 32), *range(127, 160))}
    marks = {"\u200e", "\u200f", "\u202a", "\u202e", "\u2066", "\u2069", "\u2028", "\ufeff"}
    assert not (control | marks) & set(cleaned)


@pytest.mark.parametrize("text", ["loss\t0.5", "a\u00a0b", "日\u3000本", "naïve 🚀", "line\nline"])
def test_spaces_tabs_and_letters_of_every_script_stay(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    ("millis", "shown"), [(0, "0"), (1, "0.001"), (1500, "1.5"), (192_000, "192")]
)
def test_cores_are_shown_without_empty_decimals(millis: int, shown: str) -> None:
    assert cores(millis) == shown
    assert gibibytes(2**30 - 1) == "0Gi"
    assert age(None) == "-"


def held(ordinal: int, job: str, name: str = "train", node: str = "n1") -> DeviceView:
    holder = HolderView(job_id=job, job_name=name, namespace="x", pod_set="Worker", index=0)
    return a_device(ordinal, node=node, is_free=False, holder=holder)


def test_two_jobs_of_one_name_are_two_letters() -> None:
    lines = [line.plain for line in map_lines([held(0, "1"), held(1, "2"), held(2, "2")])]
    assert lines[0] == "NODE  GPUs      NICs"
    assert lines[1].startswith("n1    ABB ")
    assert lines[2:4] == ["A  train (1 devices)", "B  train (2 devices)"]


def test_an_empty_fleet_has_a_map_too() -> None:
    lines = [line.plain for line in map_lines([])]
    assert lines[0].startswith("NODE")
    assert len(lines) == 2


def test_letters_begin_again_after_the_last() -> None:
    count = len(LETTERS) + 1
    devices = [held(n, f"{n:02}", f"job-{n:02}") for n in range(count)]
    cells = next(line.plain for line in map_lines(devices) if line.plain.startswith("n1"))
    assert cells.split()[1] == LETTERS + "A"


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"is_present": False, "health": "unhealthy", "is_free": False}, "absent"),
        ({"health": "unhealthy", "is_foreign": True, "is_free": False}, "unhealthy"),
        ({"health": "cordoned"}, "cordoned"),
        ({"is_foreign": True, "is_free": False}, "foreign"),
        ({}, "free"),
        ({"is_free": False}, "held"),
    ],
)
def test_the_strongest_word_about_a_device_wins(changes: dict[str, Any], state: str) -> None:
    assert state_of(a_device(0, **changes)) == state


def test_devices_are_drawn_in_their_own_order_whatever_order_they_come_in(
    terminal: Terminal,
) -> None:
    devices = [
        a_device(2, is_free=False),
        a_device(0, is_foreign=True),
        a_device(1, is_present=False),
        a_device(1, kind=DeviceKind.RDMA),
    ]
    items = [device.model_dump(mode="json") for device in devices]
    answer = ok({"next_cursor": "", "items": items})
    ran = terminal("device", "map", "--node", "node-1", answers=(answer,))
    assert "node-1  x-#" in ran.out
    assert ran.seen[0].url.params["node"] == "node-1"


def test_devices_are_listed_and_shown_with_their_holder(terminal: Terminal) -> None:
    device = held(3, "1").model_dump(mode="json")
    listed = ok({"next_cursor": "", "items": [{**device, "pci_address": "0000:3b:00.0"}]})
    words = ["device", "ls", "--node", "n1", "--kind", "gpu", "-o", "wide"]
    ran = terminal(*words, answers=(listed,))
    assert dict(ran.seen[0].url.params) == {"limit": "500", "node": "n1", "kind": "gpu"}
    assert "train Worker 0" in ran.out
    assert "0000:3b:00.0" in ran.out
    one = terminal("device", "show", "3", answers=(ok(device),))
    assert "holder  train Worker 0" in one.out
    assert terminal("device", "show", "three").code == 2
    assert terminal("device", "ls", "--kind", "tpu").code == 2


def test_a_node_is_shown_with_its_devices(terminal: Terminal) -> None:
    node = {
        **dict.fromkeys(("gpus_total", "gpus_free", "rdma_total", "rdma_free", "version"), 1),
        **dict.fromkeys(("cpu_millis_total", "cpu_millis_free"), 500),
        **dict.fromkeys(("memory_bytes_total", "memory_bytes_free"), 2**30),
    }
    words = {"id": 1, "name": "n1", "machine_type": "dgx", "health": "healthy", "labels": {}}
    devices = ok({"next_cursor": "", "items": [held(0, "1").model_dump(mode="json")]})
    ran = terminal(
        "node", "show", "n1", answers=(ok({**node, **words, "is_present": True}), devices)
    )
    assert ran.asked == ["GET /nodes/n1", "GET /devices?limit=500&node=n1"]
    assert "cpu free     0.5" in ran.out
    assert "held" in ran.out.splitlines()[-1]


def test_a_queue_tells_its_new_state(terminal: Terminal) -> None:
    for verb, state in (("pause", "paused"), ("resume", "open")):
        queue = {"name": "q", "version": 1, "state": state}
        ran = terminal("queue", verb, "q", answers=(ok(queue),))
        assert (ran.asked, ran.err) == ([f"POST /queues/q:{verb}"], f"queue q: {state}\n")
