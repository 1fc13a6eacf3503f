"""Reads the entries of a batch; one that cannot be read fails alone.

A JSON batch is read in one pass through its text, so that entries of a known template need not be
parsed. Whatever is unusual about the batch itself is left to the reading in full, which refuses it
as if nothing had been tried before; reading leaves no trace but what is remembered.
"""

import re
from functools import partial
from typing import Any

from gateway.api.dependencies import JSON, YAML_TYPES, Ask
from gateway.api.reading import parse_json
from gateway.api.submissions import (
    ENVELOPE,
    MAX_BATCH_JOBS,
    context_of,
    open_envelope,
    read_one,
    refuse_others,
    templates,
)
from gateway.api.templates import Context, Reading
from gateway.errors import BodyTooLarge, GatewayError, InvalidInput
from gateway.manifests import read_documents
from gateway.manifests.json_text import read_json, read_json_at

BATCH_ENTRY = (*ENVELOPE, "idempotency_key")
# JSON knows four kinds of white space (RFC 8259); `\s` would let more pass than the parser does.
_BEGIN = re.compile(r'[ \t\n\r]*\{[ \t\n\r]*"jobs"[ \t\n\r]*:[ \t\n\r]*\[[ \t\n\r]*')
_COMMA = re.compile(r"[ \t\n\r]*,[ \t\n\r]*")
_END = re.compile(r"[ \t\n\r]*\][ \t\n\r]*\}[ \t\n\r]*")
Outcome = Reading | GatewayError


def read_entries(ask: Ask) -> list[Outcome]:
    """Give for each entry of a batch its job and key, or why it cannot be read.

    Raises:
        MalformedBody: no JSON or YAML.
        InvalidInput: no list of jobs, or an empty one.
        BodyTooLarge: more jobs than a batch may have.
    """
    if ask.require_type(JSON, *YAML_TYPES) == JSON:
        entries = _read_in_passing(ask)
        if entries is not None:
            return entries
    return [_outcome(ask, entry) for entry in _entries(ask)]


def _read_in_passing(ask: Ask) -> list[Outcome] | None:
    """Read entry by entry through the text; None for what is not plainly a batch."""
    try:
        return _read_list(ask, ask.body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None  # reading in full says what is wrong with it


def _read_list(ask: Ask, text: str) -> list[Outcome] | None:
    # An entry may have a key beside it, which the envelope of a single job may not: texts of the
    # one kind are no texts of the other.
    context = ("entry", *context_of(ask))
    outcomes: list[Outcome] = []
    separator = _BEGIN.match(text)
    while separator is not None and len(outcomes) < MAX_BATCH_JOBS:
        outcome, end = _read_at(ask, context, text, separator.end())
        outcomes.append(outcome)
        separator = _COMMA.match(text, end)
    # An empty or too long batch ends here as well: only what is surely right is answered for.
    is_whole = outcomes and separator is None and _END.fullmatch(text, end)
    return outcomes if is_whole else None


def _read_at(ask: Ask, context: Context, text: str, start: int) -> tuple[Outcome, int]:
    """Give the entry that begins here, and where it ends; raises ValueError when it is no JSON."""
    found = templates.find(context, text, start)
    if found is not None:
        return found
    # A text that begins with a known one is that one: JSON ends where its bracket closes.
    entry, end = read_json_at(text, start)
    outcome = _outcome(ask, entry)
    if isinstance(outcome, Reading):
        read = partial(_read_text, ask)
        templates.learn(context, text[start:end], outcome, read)
    return outcome, end


def _entries(ask: Ask) -> list[Any]:
    """Give the entries of a batch, not yet looked into."""
    if ask.media_type == JSON:
        body = parse_json(ask.body)
        if not isinstance(body, dict) or not isinstance(body.get("jobs"), list):
            raise InvalidInput(
                "a batch is an object with a list of jobs",
                pointer="/jobs",
                hint='send {"jobs": [MANIFEST, ...]}',
            )
        refuse_others(body, ("jobs",))
        entries: list[Any] = body["jobs"]
    else:
        entries = list(read_documents(ask.body))
    if not entries:
        raise InvalidInput("the batch is empty", pointer="/jobs", hint="send at least one job")
    if len(entries) > MAX_BATCH_JOBS:
        raise BodyTooLarge(
            f"a batch holds at most {MAX_BATCH_JOBS} jobs, this one {len(entries)}",
            pointer="/jobs",
            value=len(entries),
            allowed=(f"at most {MAX_BATCH_JOBS} jobs",),
            hint="send several batches",
        )
    return entries


def _outcome(ask: Ask, entry: Any) -> Outcome:
    try:
        return _read_entry(ask, entry)
    except GatewayError as error:
        return error


def _read_text(ask: Ask, text: str) -> Reading:
    return _read_entry(ask, read_json(text))


def _read_entry(ask: Ask, entry: Any) -> Reading:
    document, overrides = open_envelope(entry, BATCH_ENTRY)
    # A bare manifest with such a field has an unknown field, of which the reader complains.
    key = entry.get("idempotency_key") if document is not entry else None
    if key is not None and not isinstance(key, str):
        raise InvalidInput(
            "an idempotency key is text", pointer="/idempotency_key", value=key, hint="use a UUID"
        )
    return Reading(read_one(ask, document, overrides), key)
