"""Reads jobs that differ from an earlier one only by their name, without reading them again.

Most jobs of a busy gateway come from few templates. What reading gives depends on the document and
the options alone, and on the name only through its own rules, so the earlier result is taken with
the new name. Anything unusual is read in full, and so is every document that is refused.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from gateway.manifests.documents import is_manifest
from gateway.manifests.naming import is_fitting_name
from gateway.manifests.options import ReadOptions
from gateway.schemas.job_spec import JobSpec

MOST_KNOWN = 512
LONGEST_KEY = 16 * 1024
Read = Callable[[Mapping[str, Any], ReadOptions], JobSpec]


class KnownJobs:
    """A bounded memory of read documents; safe to share between threads."""

    def __init__(self, read: Read) -> None:
        """Use this function for what is not known."""
        self._read = read
        self._known: dict[str, JobSpec] = {}

    def read(self, document: Mapping[str, Any], options: ReadOptions) -> JobSpec:
        """Give what reading the document gives; raises what reading it raises."""
        key = _key(document, options)
        known = self._known.get(key or "")
        if known is None:
            return self._learn(key, self._read(document, options))
        name = document["metadata"]["name"]
        if is_fitting_name(name, workers_of(known)):
            return renamed(known, name)
        return self._read(document, options)

    def _learn(self, key: str | None, spec: JobSpec) -> JobSpec:
        if key is None:
            return spec
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[key] = spec
        return spec


def _key(document: Mapping[str, Any], options: ReadOptions) -> str | None:
    """Give everything but the name as text; None for a document that is not remembered."""
    if "name" in options.overrides or not _is_named_manifest(document):
        return None
    nameless = {**document, "metadata": {**document["metadata"], "name": ""}}
    told = [dict(options.overrides), options.default_namespace, options.kueue_label]
    settings = [options.allow_unsafe_templates, options.rdma_resource_names]
    key = json.dumps([nameless, *told, *settings])
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
