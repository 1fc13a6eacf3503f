"""Reads jobs that differ from an earlier one only by their name, without reading them again.

Most jobs of a busy gateway come from few templates. What reading gives depends on the document and
the options alone, and on the name only through its own rules, so the earlier result is taken with
the new name. Anything unusual is read in full, and so is every document that is refused.
"""

import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from gateway.manifests.documents import is_manifest
from gateway.manifests.naming import is_fitting_name
from gateway.manifests.options import ReadOptions
from gateway.manifests.reader import canonical
from gateway.schemas.job_spec import JobSpec

MOST_KNOWN = 512
_PLACEHOLDER = f"x{secrets.token_hex(16)}"
"""Stands for a name; nobody can guess it and write it elsewhere in a document."""
LONGEST_KEY = 16 * 1024
_JSON = TypeAdapter(list[Any])
Read = Callable[[Mapping[str, Any], ReadOptions], JobSpec]


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A job without its name; its canonical JSON in parts, with the name between.

    One is equal to itself only, so that it is cheap to ask whether two jobs share it.
    """

    spec: JobSpec
    """Has a placeholder for a name, or the name of its only job."""
    parts: tuple[str, ...]


class ReadJob(NamedTuple):
    """A job: what it shares with others, and its name."""

    known: Known
    name: str

    @property
    def spec(self) -> JobSpec:
        """The whole job."""
        spec = self.known.spec
        return spec if spec.name == self.name else renamed(spec, self.name)

    @property
    def digest(self) -> str:
        """The digest of the job's canonical JSON."""
        return hashlib.sha256(self.name.join(self.known.parts).encode()).hexdigest()


def known(spec: JobSpec) -> Known:
    """Prepare a job that was read for being renamed."""
    nameless = renamed(spec, _PLACEHOLDER)
    return Known(nameless, tuple(canonical(nameless).split(_PLACEHOLDER)))


def alone(spec: JobSpec) -> ReadJob:
    """Give a job that shares nothing."""
    return ReadJob(Known(spec, (canonical(spec),)), spec.name)


def text_parts(spec: JobSpec) -> tuple[str, ...]:
    """Give a known job's spec as JSON in parts; the name of a job, put between them, makes its own.

    No character of a name that reading took is escaped in JSON.
    """
    return tuple(spec.model_dump_json().split(_PLACEHOLDER))


class KnownJobs:
    """A bounded memory of read documents; safe to share between threads."""

    def __init__(self, read: Read) -> None:
        """Use this function for what is not known."""
        self._read = read
        self._known: dict[bytes, Known] = {}

    def read(self, document: Mapping[str, Any], options: ReadOptions) -> ReadJob:
        """Give what reading the document gives; raises what reading it raises."""
        key = _key(document, options)
        if key is not None:
            found = self._known.get(key)
            name = document["metadata"]["name"]
            if found is not None and is_fitting_name(name, workers_of(found.spec)):
                return ReadJob(found, name)
        spec = self._read(document, options)
        if key is None:
            return alone(spec)
        # Forgetting all at once is cheap, and needs no order that threads would have to agree on.
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        found = self._known[key] = known(spec)
        return ReadJob(found, spec.name)


def _key(document: Mapping[str, Any], options: ReadOptions) -> bytes | None:
    """Give everything but the name as text; None for a document that is not remembered."""
    if "name" in options.overrides or not _is_named_manifest(document):
        return None
    # Compared by what pydantic writes: of values that are equal in Python, such as 1 and True,
    # only one may be allowed.
    nameless = {**document, "metadata": {**document["metadata"], "name": ""}}
    told = [dict(options.overrides), options.default_namespace, options.kueue_label]
    settings = [options.allow_unsafe_templates, options.rdma_resource_names]
    try:
        key = _JSON.dump_json([nameless, *told, *settings])
    except ValueError:
        return None  # something in it is no JSON; reading says what
    return key if len(key) <= LONGEST_KEY else None


def _is_named_manifest(document: Mapping[str, Any]) -> bool:
    if not isinstance(document, dict) or not is_manifest(document):
        return False
    metadata = document.get("metadata")
    return isinstance(metadata, dict) and isinstance(metadata.get("name"), str)


def workers_of(spec: JobSpec) -> int:
    """Give a job's number of Workers."""
    return sum(item.count for item in spec.pod_sets if item.name == "Worker")


def renamed(spec: JobSpec, name: str) -> JobSpec:
    """Give the job that reading the same document with this name gives."""
    # What changes is copied; everything below is shared with the other jobs and never written to.
    metadata = {**spec.manifest["metadata"], "name": name}
    return spec.model_copy(
        update={"name": name, "manifest": {**spec.manifest, "metadata": metadata}}
    )
