"""The command that says why a job waits."""

from typing import TYPE_CHECKING

from gateway.cli.jobs import JobId, find
from gateway.cli.options import Namespace, Output
from gateway.cli.output import Format, console, show_data
from gateway.cli.session import client
from gateway.cli.terminal import age, clean

if TYPE_CHECKING:  # the models cost a tenth of a second, and help needs none
    from gateway.schemas.views import ExplainView, PlanView, QuotaStepView


def explain(job: JobId, namespace: Namespace = None, output: Output = Format.TABLE) -> None:
    """Say why a job waits, and what would let it start.

    Every cause with its counts, the quota path, the place in the queue, and what would unblock it.

    Examples:
      gateway explain train
      gateway explain train -o json
    """
    answer = find(client(), job, namespace).explain()
    if output is not Format.TABLE:
        show_data(answer.model_dump(mode="json"), output)
        return
    for line in explanation_lines(answer):
        console().print(clean(line), markup=False, soft_wrap=True)


def explanation_lines(answer: "ExplainView") -> list[str]:
    """Give the answer as lines of text; what is not known has none."""
    told = [
        *why_lines(answer),
        ("estimate", answer.estimate),
        ("as of", _decided_words(answer)),
    ]
    return [answer.summary, *(f"{label:<11}{words}" for label, words in told if words)]


def why_lines(answer: "ExplainView | PlanView") -> list[tuple[str, str]]:
    """Say why a job waits, or would wait, as labels with words."""
    return [
        ("reason", answer.reason or ""),
        *(("cause", cause.detail) for cause in answer.causes),
        *(("quota", _quota_words(step)) for step in answer.quota_path),
        ("position", _position_words(answer)),
        *(("unblock", words) for words in answer.unblock),
    ]


def _quota_words(step: "QuotaStepView") -> str:
    return (
        f"{step.node}: {step.resource} of {step.flavor}: {step.used} used of "
        f"{step.nominal} nominal, {step.available} available, {step.requested} asked"
    )


def _position_words(answer: "ExplainView | PlanView") -> str:
    if answer.position is None:
        return ""
    gpus = f" with {answer.gpus_ahead} GPUs" if answer.gpus_ahead else ""
    return f"{answer.position} in its queue, {answer.jobs_ahead} ahead{gpus}"


def _decided_words(answer: "ExplainView") -> str:
    if answer.decided_at is None:
        return ""
    return f"cycle {answer.serial}, {age(answer.decided_at)} ago"
