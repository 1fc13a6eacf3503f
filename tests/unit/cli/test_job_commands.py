"""Commands on jobs: what each asks the gateway for, prints, and exits with."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from tests.unit.cli.fake_session import Terminal
from tests.unit.sdk.fake_gateway import NOW, Answer, a_job, ok, problem, text

JOB = a_job()
ID = JOB["id"]
OTHER = a_job(id="99999999-2222-3333-4444-000000000000", name="other")


def page(*items: dict[str, Any]) -> httpx2.Response:
    return ok({"next_cursor": "", "items": list(items)})


def interrupt(_request: httpx2.Request) -> httpx2.Response:
    raise KeyboardInterrupt


PLACE = {
    "attempt": 1,
    "pod_set": "Worker",
    "index": 2,
    "rank": 3,
    "node": "node-1",
    "devices": [{"kind": "gpu", "ordinal": 0, "name": "gpu[bold]0[/]"}],
    "pair": "switch",
    "guarantee": "advisory",
}
EXPLAINED = {
    "job_id": ID,
    "name": "train",
    "state": "pending",
    "reason": "OverQuota",
    "summary": "train waits",
    "serial": 9,
    "decided_at": NOW,
    "quota_path": [
        {
            "node": "research",
            "flavor": "default",
            "resource": "gpu",
            "used": 6,
            "nominal": 8,
            "available": 2,
            "requested": 4,
        }
    ],
}


@pytest.mark.parametrize(
    ("word", "answers", "asked"),
    [
        (ID, [ok(JOB)], [f"GET /jobs/{ID}"]),
        ("train", [page(JOB)], ["GET /jobs?limit=500&name=train"]),
        ("55555555", [page(), page(JOB, OTHER)], ["name=55555555", "GET /jobs?limit=500"]),
        ("11111111-22", [page(), page(OTHER, JOB)], ["name=11111111-22", "GET /jobs?limit=500"]),
        ("cafe", [page(a_job(name="cafe"))], ["GET /jobs?limit=500&name=cafe"]),
    ],
)
def test_a_job_is_found_by_the_cheapest_request_that_can_find_it(
    terminal: Terminal, word: str, answers: list[Answer], asked: list[str]
) -> None:
    ran = terminal("cancel", word, "--dry-run", answers=tuple(answers))
    assert ran.code == 0, ran.err
    assert f"({ID}), which is pending" in ran.err
    assert all(found.endswith(wanted) for found, wanted in zip(ran.asked, asked, strict=True)), (
        ran.asked
    )


@pytest.mark.parametrize(
    ("word", "answers", "code", "told"),
    [
        ("nobody", [page()], 4, "no job 'nobody'"),
        ("abc", [page()], 4, "no job 'abc'"),  # three letters are no part of an id
        ("4444", [page(), page(JOB, OTHER)], 4, "no job '4444'"),  # the middle is no end of it
        ("-", [page()], 4, "no job '-'"),
        ("1111", [page(), page(JOB, a_job(id=ID[:-1] + "0"))], 3, "1111 fits 2 jobs"),
    ],
)
def test_what_fits_no_job_or_several_is_told_apart(
    terminal: Terminal, word: str, answers: list[Answer], code: int, told: str
) -> None:
    ran = terminal("show", "--", word, answers=tuple(answers))
    assert (ran.code, told in ran.err, ran.out) == (code, True, "")
    assert "next:" in ran.err


def test_a_namespace_narrows_the_search(terminal: Terminal) -> None:
    ran = terminal("hold", "train", "-n", "team-b", "--dry-run", answers=(page(JOB),))
    assert ran.asked == ["GET /jobs?limit=500&name=train&namespace=team-b"]


def test_a_mistake_in_the_last_name_changes_nothing(terminal: Terminal) -> None:
    ran = terminal("cancel", "train", "nobody", answers=(page(JOB), page()))
    assert ran.code == 4
    assert all(line.startswith("GET") for line in ran.asked)


@pytest.mark.parametrize("verb", ["cancel", "hold", "release", "requeue"])
def test_each_verb_is_sent_and_its_new_state_told(terminal: Terminal, verb: str) -> None:
    answers = (page(JOB), page(OTHER), ok(a_job("held")), ok(a_job("held", name="other")))
    ran = terminal(verb, "train", "other", answers=answers)
    assert (ran.code, ran.err) == (0, "train: held\nother: held\n")
    assert ran.asked[2:] == [f"POST /jobs/{ID}:{verb}", f"POST /jobs/{OTHER['id']}:{verb}"]
    dry = terminal(verb, "train", "--dry-run", answers=(page(JOB),))
    assert dry.err == f"would {verb} train ({ID}), which is pending\n"
    assert len(dry.seen) == 1


def test_a_new_priority_may_be_negative(terminal: Terminal) -> None:
    answers = (page(JOB), ok(a_job(priority=-5)))
    ran = terminal("reprioritise", "train", "--", "-5", answers=answers)
    assert (ran.code, ran.err) == (0, "train: priority -5\n")
    assert ran.bodies == [{"priority": -5}]


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (problem(409, "invalid_transition"), 3),
        (problem(422, "invalid"), 3),
        (problem(404, "not_found"), 4),
        (problem(403, "denied"), 5),
        (problem(401, "unauthenticated"), 5),
        (problem(500, "internal"), 3),
        (problem(418, "brand_new_code"), 3),
        (httpx2.ReadError("cut"), 6),
    ],
)
def test_each_refusal_has_its_exit_code(terminal: Terminal, answer: Answer, code: int) -> None:
    ran = terminal("hold", ID, answers=(ok(JOB), answer))
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith("error: ")


def test_every_filter_of_a_list_is_sent(terminal: Terminal) -> None:
    words = ["--state", "pending", "--state", "held", "--queue", "q", "--user", "u"]
    words += ["--reason", "OverQuota", "-n", "team-a", "-o", "name"]
    ran = terminal("ls", *words, answers=(page(JOB),))
    assert ran.out == f"{ID}\n"
    assert dict(ran.seen[0].url.params) == {
        "limit": "500",
        "state": "pending,held",
        "queue": "q",
        "user": "u",
        "reason": "OverQuota",
        "namespace": "team-a",
    }


def test_a_list_shows_no_more_than_its_limit_and_asks_for_no_more_pages(
    terminal: Terminal,
) -> None:
    more = ok({"next_cursor": "more", "items": [JOB, OTHER]})
    ran = terminal("ls", "--limit", "2", "-o", "name", answers=(more,))
    assert ran.out.split() == [ID, OTHER["id"]]
    assert len(ran.seen) == 1
    assert terminal("ls", "--limit", "0").code == 2


@pytest.mark.parametrize(
    ("form", "columns", "absent"),
    [
        ("table", ["ID", "NAME", "STATE", "REASON", "GPUS"], ["USER", "FULL ID"]),
        ("wide", ["ID", "NAME", "USER", "NAMESPACE", "NICS", "TRY", "FULL ID"], []),
    ],
)
def test_a_table_has_its_columns(
    terminal: Terminal, form: str, columns: list[str], absent: list[str]
) -> None:
    job = a_job(reason="OverQuota", name="[red]x[/]")
    head, row = terminal("ls", "-o", form, answers=(page(job),)).out.splitlines()
    assert [title for title in columns if title not in head] == []
    assert [title for title in absent if title in head] == []
    assert "OverQuota" in row
    assert "[red]x[/]" in row, "square brackets are no markup"
    assert "55555555" in row


@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_data_forms_hold_every_field(terminal: Terminal, form: str, read: Any) -> None:
    told = read(terminal("ls", "-o", form, answers=(page(JOB, OTHER),)).out)
    assert [job["id"] for job in told] == [ID, OTHER["id"]]
    assert told[0]["queue"] == "default"
    assert "submitted_at" in told[0]
    one = read(terminal("show", ID, "-o", form, answers=(ok(JOB), ok(JOB))).out)
    assert one["id"] == ID


def test_one_job_is_shown_with_its_places(terminal: Terminal) -> None:
    job = a_job("running", message="", exit_code=0, guarantee="advisory", started_at=NOW)
    ran = terminal("show", ID, answers=(ok(job), ok(job), page(PLACE)))
    lines = dict(line.split(maxsplit=1) for line in ran.out.splitlines() if line[0] != " ")
    assert lines["name"] == "team-a/train"
    assert lines["queue"] == "default, priority 0"
    assert lines["gang"] == "1 pod, 8 GPUs, 8 NICs"
    assert "message" not in lines
    assert "ended" not in lines
    assert lines["exit"].split() == ["code", "0"], "an exit code of zero is something to show"
    assert "  rank 3  Worker 2  node-1  gpu[bold]0[/]\n" in ran.out


def test_an_explanation_names_the_quota_path_and_how_old_it_is(terminal: Terminal) -> None:
    ran = terminal("explain", ID, answers=(ok(JOB), ok(EXPLAINED)))
    quota = "research: gpu of default: 6 used of 8 nominal, 2 available, 4 asked"
    assert ran.out.splitlines()[:3] == [
        "train waits",
        "reason     OverQuota",
        f"quota      {quota}",
    ]
    assert ran.out.splitlines()[3].startswith("as of      cycle 9, ")
    told = json.loads(terminal("explain", ID, "-o", "json", answers=(ok(JOB), ok(EXPLAINED))).out)
    assert told["quota_path"][0]["available"] == 2


def test_events_of_one_job_or_of_all_are_listed(terminal: Terminal) -> None:
    event = {"id": 1, "at": NOW, "kind": "held", "actor": "anna", "detail": "by \x1b[2J"}
    one = terminal("events", ID, answers=(ok(JOB), page(event)))
    everything = terminal("events", answers=(page(event),))
    assert one.out.splitlines()[0].split() == ["TIME", "EVENT", "BY", "DETAIL"]
    assert everything.out.splitlines()[0].split() == ["TIME", "JOB", "EVENT", "BY", "DETAIL"]
    assert "2026-01-01 00:00:00" in one.out
    assert "by \ufffd[2J" in one.out
    assert everything.asked == ["GET /events?limit=500"]


@pytest.mark.parametrize(
    ("words", "query"),
    [
        ([], "rank=0"),
        (["--rank", "3", "--tail", "5"], "rank=3&tail=5"),
        (["--attempt", "2"], "rank=0&attempt=2"),
        (["--attempt", "0"], "rank=0"),
    ],
)
def test_lines_are_printed_as_the_job_wrote_them(
    terminal: Terminal, words: list[str], query: str
) -> None:
    answer = text("loss\t0.5", "  indented", "\u65e5\u3000本", "bell\x07", "")
    ran = terminal("logs", ID, *words, answers=(ok(JOB), answer))
    assert ran.out == "loss\t0.5\n  indented\n日\u3000本\nbell\ufffd\n\n"
    assert ran.seen[-1].url.query.decode() == query


@pytest.mark.parametrize(
    "words", [["--rank", "-1"], ["--tail", "0"], ["--attempt", "x"], ["a", "b"]]
)
def test_a_wrong_choice_of_lines_is_a_usage_error(terminal: Terminal, words: list[str]) -> None:
    ran = terminal("logs", "train", *words)
    assert (ran.code, ran.seen) == (2, [])


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        (["wait", ID], [ok(a_job("running")), interrupt]),
        (["logs", "-f", ID], [ok(a_job("running")), ok(a_job("running")), interrupt]),
    ],
)
def test_ctrl_c_detaches_and_says_that_the_job_goes_on(
    terminal: Terminal, words: list[str], answers: list[Answer]
) -> None:
    ran = terminal(*words, answers=tuple(answers))
    assert ran.code == 130
    assert ran.err.startswith("detached; the job goes on")
    assert not any(line.startswith("POST") for line in ran.asked)


def test_ctrl_c_elsewhere_is_no_failed_job(terminal: Terminal) -> None:
    assert terminal("ls", answers=(interrupt,)).code == 130


@pytest.mark.parametrize(
    ("words", "state", "code"),
    [
        ([], "succeeded", 0),
        ([], "failed", 1),
        ([], "cancelled", 1),
        (["--for", "failed"], "failed", 0),
        (["--for", "running", "--for", "held"], "held", 0),
        (["--timeout", "0"], "pending", 124),
        (["--for", "done"], "pending", 3),
    ],
)
def test_waiting_exits_with_what_became_of_the_job(
    terminal: Terminal, words: list[str], state: str, code: int
) -> None:
    answers = (ok(a_job(state)), ok(a_job(state)))
    ran = terminal("wait", ID, *words, answers=answers)
    assert ran.code == code, ran.err
    assert (ran.err == f"train: {state}\n") is (code == 0)


SHORT = "name: NAME\nimage: example/train:1\n"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Give two files, the first of which holds two jobs."""
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text(SHORT.replace("NAME", "one") + "---\n" + SHORT.replace("NAME", "two"))
    second.write_text(SHORT.replace("NAME", "three"))
    return [str(first), str(second)]


def test_several_jobs_get_numbered_keys_and_print_their_ids(
    terminal: Terminal, files: list[str]
) -> None:
    answers = tuple(ok(a_job(id=str(n), name=f"job-{n}"), 201) for n in range(3))
    ran = terminal("submit", *files, "--key", "run", "--queue", "q", answers=answers)
    assert (ran.code, ran.out) == (0, "0\n1\n2\n")
    assert [request.headers["idempotency-key"] for request in ran.seen] == [
        *("run:0", "run:1", "run:2")
    ]
    assert [body["manifest"]["name"] for body in ran.bodies] == ["one", "two", "three"]
    assert all(body["overrides"] == {"queue": "q"} for body in ran.bodies)
    assert ran.err.count("submitted to queue default") == 3


def test_one_job_keeps_its_key_as_it_is(terminal: Terminal, files: list[str]) -> None:
    words = ["--key", "run", "--hold", "--priority", "0", "--name", "x"]
    ran = terminal("submit", files[1], *words, answers=(ok(JOB, 201),))
    assert ran.seen[0].headers["idempotency-key"] == "run"
    assert ran.bodies[0]["overrides"] == {"priority": 0, "name": "x", "hold": True}


def test_a_mistake_in_the_last_file_submits_nothing(terminal: Terminal, files: list[str]) -> None:
    Path(files[1]).write_text("name: [\n")
    ran = terminal("submit", *files)
    assert (ran.code, ran.seen, ran.out) == (3, [], "")
    assert "line 2" in ran.err


def test_a_refused_job_stops_the_ones_after_it(terminal: Terminal, files: list[str]) -> None:
    ran = terminal("submit", *files, answers=(ok(JOB, 201), problem(409, "name_taken")))
    assert (ran.code, len(ran.seen)) == (3, 2)


@pytest.mark.parametrize("words", [[], ["--queue", "q"]])
def test_nothing_to_submit_is_a_usage_error(terminal: Terminal, words: list[str]) -> None:
    ran = terminal("submit", *words)
    assert (ran.code, ran.seen) == (2, [])
    assert "--from JOB" in ran.err


def test_a_dry_run_shows_the_plan_of_each_job(terminal: Terminal, files: list[str]) -> None:
    plan = {"spec": {"name": "one"}, "queue": "q", "pods": 2, "gpus": 16, "rdma": 0}
    ran = terminal("submit", *files, "--dry-run", answers=(ok(plan), ok(plan), ok(plan)))
    assert ran.code == 0
    assert ran.out.count("stored  nothing (dry run)") == 3
    assert "nics    0" in ran.out
    assert {request.url.query for request in ran.seen} == {b"dry_run=plan"}


def test_a_job_submitted_again_sends_its_stored_manifest(terminal: Terminal) -> None:
    manifest = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}
    stored = a_job("failed", spec={"manifest": manifest, "name": "train"})
    answers = (page(stored), ok(stored), ok(JOB, 201))
    ran = terminal("submit", "--from", "train", "--name", "again", answers=answers)
    assert ran.code == 0, ran.err
    assert ran.bodies == [{"manifest": manifest, "overrides": {"name": "again"}}]


@pytest.mark.parametrize(
    ("state", "code", "word"), [("succeeded", 0, "train: succeeded"), ("failed", 1, "ended as")]
)
def test_a_watched_submit_prints_lines_and_ends_as_its_job(
    terminal: Terminal, files: list[str], state: str, code: int, word: str
) -> None:
    done = a_job(state)
    answers = (ok(JOB, 201), ok(done), text("hello"), ok(done))
    ran = terminal("submit", files[1], "--watch", answers=answers)
    assert (ran.code, ran.out) == (code, f"{ID}\nhello\n")
    assert word in ran.err


def test_submitted_jobs_are_printed_in_the_form_asked_for(
    terminal: Terminal, files: list[str]
) -> None:
    ran = terminal("submit", files[1], "-o", "json", answers=(ok(JOB, 201),))
    assert json.loads(ran.out)[0]["id"] == ID
    assert ran.err == ""
