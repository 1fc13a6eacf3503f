"""Resolves a container's environment as a kubelet does when it starts the container.

Known are literal values with $(NAME) expansion, fieldRef, config maps and secrets. What is not
known (resourceFieldRef, service variables) is left out or shown as such, never guessed.
"""

import base64
import re
from collections.abc import Callable

from tests.cluster.harness.rest import JsonObject

KEYED = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)")
Fetch = Callable[[str, str], JsonObject | None]
"""Gives a namespaced object by plural (configmaps, secrets) and name."""


class UnresolvedVariable(LookupError):
    """A variable names an object or key that does not exist, so the container cannot start."""


def resolve(pod: JsonObject, container: JsonObject, fetch: Fetch) -> dict[str, str]:
    """Give the variables of one container in the order of its specification.

    Raises:
        UnresolvedVariable: a config map, secret or key is missing and not optional.
    """
    found: dict[str, str] = {}
    for source in container.get("envFrom", []):
        found |= whole_object(source, fetch)
    for variable in container.get("env", []):
        value = value_of(variable, pod, found, fetch)
        if value is not None:
            found[variable["name"]] = value
    return found


def value_of(
    variable: JsonObject, pod: JsonObject, earlier: dict[str, str], fetch: Fetch
) -> str | None:
    """Give one variable's value; None leaves an optional one out."""
    source = variable.get("valueFrom")
    if not source:
        return expand(variable.get("value", ""), earlier)
    if "fieldRef" in source:
        return field_of(pod, source["fieldRef"]["fieldPath"])
    for kind, plural in (("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")):
        if kind in source:
            return key_of(source[kind], plural, fetch)
    return f"<{next(iter(source))} is not resolved here>"


def field_of(pod: JsonObject, path: str) -> str:
    """Give a field of the pod; a missing label or annotation is an empty text."""
    keyed = KEYED.fullmatch(path)
    if keyed:
        entries = pod["metadata"].get(keyed[1]) or {}
        return str(entries.get(keyed[2], ""))
    place = pod
    *parents, last = path.split(".")
    for parent in parents:
        place = place.get(parent) or {}
    return str(place.get(last, ""))


def expand(text: str, earlier: dict[str, str]) -> str:
    """Replace $(NAME) by an earlier variable; $$ is a dollar; an unknown name stays."""

    def replace(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return earlier.get(match[1], match[0])

    return REFERENCE.sub(replace, text)


def key_of(reference: JsonObject, plural: str, fetch: Fetch) -> str | None:
    """Give one key of a config map or secret."""
    data = data_of(reference["name"], plural, fetch)
    if data is not None and reference["key"] in data:
        return data[reference["key"]]
    if reference.get("optional"):
        return None
    raise UnresolvedVariable(f"{plural} {reference['name']} has no key {reference['key']}")


def whole_object(source: JsonObject, fetch: Fetch) -> dict[str, str]:
    """Give all keys of the object an envFrom entry names."""
    kind, plural = (
        ("secretRef", "secrets") if "secretRef" in source else ("configMapRef", "configmaps")
    )
    reference = source[kind]
    data = data_of(reference["name"], plural, fetch)
    if data is None and not reference.get("optional"):
        raise UnresolvedVariable(f"{plural} {reference['name']} does not exist")
    prefix = source.get("prefix", "")
    return {f"{prefix}{key}": value for key, value in (data or {}).items()}


def data_of(name: str, plural: str, fetch: Fetch) -> dict[str, str] | None:
    """Give the data of an object as text; None where it does not exist."""
    found = fetch(plural, name)
    if found is None:
        return None
    data: dict[str, str] = found.get("data") or {}
    if plural == "secrets":
        return {key: base64.b64decode(value).decode() for key, value in data.items()}
    return data
