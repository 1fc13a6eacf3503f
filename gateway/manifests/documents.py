"""Finds the training jobs among the documents of a source, and refuses what is none.

Unpacks lists; knows the two forms of a job only by their outline, not their fields.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from types import NoneType
from typing import Any, Final

from gateway.errors import InvalidInput
from gateway.manifests.spot import Spot
from gateway.schemas.suggesting import closest

API_VERSION: Final = "kubeflow.org/v1"
KIND: Final = "PyTorchJob"
_HINTS: Final = {
    "AppWrapper": "submit the PyTorchJob that it wraps",
    "TrainJob": "TrainJob is not built; submit a PyTorchJob of kubeflow.org/v1",
    "Job": "submit a PyTorchJob, or the short form (image, command, workers)",
}


def is_manifest(document: dict[str, Any]) -> bool:
    """True for a Kubernetes object; anything else is the short form."""
    return not {"apiVersion", "kind", "metadata", "spec"}.isdisjoint(document)


def flatten(documents: list[Any]) -> list[dict[str, Any]]:
    """Give every job document: lists and `kind: List` unpacked, empty documents left out.

    Raises InvalidInput for a document of another kind, named by kind and position, or for none.
    """
    jobs = list(chain.from_iterable(map(_unpack, documents)))
    if not jobs:
        raise InvalidInput(
            "there is no job in what was submitted",
            allowed=(KIND, "short form"),
            hint="give a PyTorchJob manifest or the short form (name, image, command, workers)",
        )
    for position, job in enumerate(jobs):
        require_job_kind(job, f"document {position + 1} of {len(jobs)}")
    return jobs


def require_job_kind(document: dict[str, Any], called: str) -> None:
    """Refuse an object of another kind or API version."""
    if not is_manifest(document):
        return
    kind, version = Spot(document).at("kind"), Spot(document).at("apiVersion")
    if kind.value != KIND:
        raise kind.refuse(
            f"{called} is of kind {_word(kind)}; only {KIND} is submitted here",
            allowed=(KIND,),
            hint=_kind_hint(kind.value, document),
        )
    version.demand(
        version.value == API_VERSION,
        f"{called} is of API version {_word(version)}, not {API_VERSION}",
        f"write apiVersion: {API_VERSION}",
        allowed=(API_VERSION,),
    )


def _unpack(document: Any) -> Iterator[dict[str, Any]]:
    # `kubectl get -o yaml` wraps in `kind: List`, the API itself in `kind: PyTorchJobList`.
    # Lists of lists are unpacked in a loop, so that none is nested too deeply.
    waiting = [document]
    while waiting:
        value = waiting.pop(0)
        listed = _listed(value)
        if listed is None:
            yield value
        else:
            # In front, so that jobs keep the order of the document: refusals count by it.
            waiting[:0] = listed


def _listed(value: Any) -> list[Any] | None:
    """Give what a list or a `kind: List` holds, nothing for no value; None for another mapping."""
    if isinstance(value, list | NoneType):
        return value or []
    if not _is_list(Spot(value).fields()):
        return None
    return [item.value for item in Spot(value).at("items").items()]


def _is_list(value: Mapping[str, Any]) -> bool:
    return str(value.get("kind")).endswith("List") and "items" in value


def _word(spot: Spot) -> str:
    return str(spot.value)[:60] if isinstance(spot.value, str) else "that is missing or no text"


def _kind_hint(kind: object, document: dict[str, Any]) -> str:
    if not isinstance(kind, str):
        return _kindless_hint(document)
    if closest(kind, [KIND]):
        return f"did you mean {KIND!r}?"
    return _HINTS.get(
        kind, f"apply the {kind} with kubectl first, and submit only the {KIND} documents here"
    )


def _kindless_hint(document: dict[str, Any]) -> str:
    near = [key for key in document if key != "kind" and closest(key, ["kind"])]
    return f"did you mean 'kind' instead of {near[0]!r}?" if near else f"write kind: {KIND}"
