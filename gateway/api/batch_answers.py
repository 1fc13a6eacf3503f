"""Submits a batch and writes its answer, entry by entry.

New jobs, which are nearly all, are written without a model for each; the answer is what the models
of `BatchAnswer` would have written.
"""

from gateway.api.batch_reading import read_entries
from gateway.api.dependencies import Ask
from gateway.api.templates import Reading
from gateway.errors import GatewayError
from gateway.schemas.problems import problem_of
from gateway.schemas.views import BatchItem
from gateway.service.storing import Submitted
from gateway.service.submit import submit_batch


def submit_entries(ask: Ask) -> str:
    """Submit a batch; an entry that cannot be read fails alone, like one that is refused."""
    entries = read_entries(ask)
    readable = [entry for entry in entries if isinstance(entry, Reading)]
    # What was not readable has no outcome; those that were have theirs in the same order.
    stored = iter(submit_batch(ask.gateway, ask.caller, readable) if readable else ())
    items = [
        item_text(index, next(stored))
        if isinstance(entry, Reading)
        else _refusal_text(index, entry, ask.request_id)
        for index, entry in enumerate(entries)
    ]
    return f'{{"items":[{",".join(items)}]}}'


def item_text(index: int, outcome: Submitted | GatewayError) -> str:
    """Give the outcome of one job as a `BatchItem` in JSON."""
    if isinstance(outcome, GatewayError):
        return _refusal_text(index, outcome)
    # The text of a job was written when it was stored, and is JSON already.
    is_new = "true" if outcome.is_new else "false"
    return f'{{"index":{index},"job":{outcome.text},"is_new":{is_new},"error":null}}'


def _refusal_text(index: int, error: GatewayError, request_id: str = "") -> str:
    return BatchItem(index=index, error=problem_of(error, request_id)).model_dump_json()
