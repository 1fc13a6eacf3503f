"""Reads jobs that differ from an earlier one only by their name, without reading them again.

Most jobs of a busy gateway come from few templates. What reading gives depends on the document and
the options alone, and on the name only through its own rules, so the earlier result is taken with
the new name. Anything unusual is read in full, and so is every document that is refused.
"""

import hashlib
import secrets
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from gateway.manifests.documents import is_manifest
from gateway.manifests.naming import is_fitting_name
from gateway.manifests.options import ReadOptions
from gateway.manifests.reader import canonical, digest
from gateway.schemas.job_spec import JobSpec

MOST_KNOWN = 512
_PLACEHOLDER = f"x{secrets.token_hex(16)}"
"""Stands for a name; nobody can guess it and write it elsewhere in a document."""
LONGEST_KEY = 16 * 1024
_JSON = TypeAdapter(list[Any])
Read = Callable[[Mapping[str, Any], ReadOptions], JobSpec]


class ReadJob(NamedTuple):
    """A job and the digest of its canonical JSON."""

    spec: JobSpec
    digest: str


class Known(NamedTuple):
    """A job whose name can be replaced; its canonical JSON in parts, with the name between."""

    spec: JobSpec
    parts: tuple[str, ...]

    def named(self, name: str) -> ReadJob:
        """Give this job under another name."""
        text = name.join(self.parts)
        return ReadJob(renamed(self.spec, name), hashlib.sha256(text.encode()).hexdigest())


def known(spec: JobSpec) -> Known:
    """Prepare a job for being renamed."""
    return Known(spec, tuple(canonical(renamed(spec, _PLACEHOLDER)).split(_PLACEHOLDER)))


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
                return found.named(name)
        spec = self._read(document, options)
        if key is not None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[key] = known(spec)
        return ReadJob(spec, digest(spec))


def _key(document: Mapping[str, Any], options: ReadOptions) -> bytes | None:
    """Give everything but the name as text; None for a document that is not remembered."""
    if "name" in options.overrides or not _is_named_manifest(document):
        return None
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
    metadata = {**spec.manifest["metadata"], "name": name}
    return spec.model_copy(
        update={"name": name, "manifest": {**spec.manifest, "metadata": metadata}}
    )
