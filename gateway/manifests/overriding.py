"""Applies what the caller says beside the document: flags of the command line, keyword arguments.

Overrides have the short form's field names and win over the document. The gateway's own fields are
settled elsewhere; here are name, namespace, labels, annotations and the parts of the short form.
"""

from collections.abc import Iterable
from typing import Any, Final

from gateway.manifests.options import ReadOptions
from gateway.manifests.plain import plain
from gateway.manifests.short_form import TEMPLATE_KEYS, refuse_unknown_keys
from gateway.manifests.spot import Spot

_MERGED: Final = ("env", "resources")


def overrides_of(options: ReadOptions) -> dict[str, Any]:
    """Give the overrides that are given, as plain data, names with underscores.

    Raises InvalidInput for a key that no job has.
    """
    given = {key: value for key, value in options.overrides.items() if value is not None}
    data: dict[str, Any] = plain(given)
    refuse_unknown_keys(Spot(data))
    Spot(data).at("manifest").demand(
        "manifest" not in data, "a manifest cannot be overridden", "submit that manifest instead"
    )
    return underscored(data, tuple(data))


def underscored(data: dict[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Give the same data with underscores in these keys, which may be written with dashes.

    Raises InvalidInput for a key that is there in both spellings with two values.
    """
    known = {key.replace("-", "_") for key in keys}
    named: dict[str, Any] = {}
    for key, spot in Spot(data).entries():
        name = key.replace("-", "_")
        earlier = named.setdefault(name if name in known else key, spot.value)
        is_alike = earlier == spot.value
        spot.demand(is_alike, f"{key} is given twice, and not alike", "say it in one place only")
    return named


def apply_to_short_form(document: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """Give the short form with image, command, workers and so on replaced; env is merged."""
    given = _given(overrides, TEMPLATE_KEYS)
    return {**document, **{key: _replaced(document, overrides, key) for key in given}}


def _replaced(document: dict[str, Any], overrides: dict[str, Any], key: str) -> Any:
    both = document.get(key), overrides[key]
    # A list of env replaces the whole: its order and its references could not be merged safely.
    if key not in _MERGED or not all(isinstance(each, dict) for each in both):
        return overrides[key]
    return {**document[key], **overrides[key]}


def refuse_template_keys(overrides: dict[str, Any]) -> None:
    """Refuse overrides that only the short form can take."""
    # It may have several templates and containers: which image is meant, nobody can say.
    for key in _given(overrides, TEMPLATE_KEYS):
        raise (
            Spot(overrides)
            .at(key)
            .refuse(
                f"{key} cannot be given beside a PyTorchJob manifest",
                hint="change it in the manifest, or use the short form",
            )
        )


def apply_to_manifest(manifest: dict[str, Any], overrides: dict[str, Any]) -> None:
    """Write name, namespace, labels and annotations into the manifest; maps are merged."""
    metadata = Spot(manifest).mapping_at("metadata")
    given = Spot(overrides)
    for key in _given(overrides, ("name", "namespace")):
        metadata.value[key] = given.at(key).text()
    for key in _given(overrides, ("labels", "annotations")):
        metadata.value[key] = {**metadata.at(key).fields(), **given.at(key).text_map()}


def _given(overrides: dict[str, Any], keys: tuple[str, ...]) -> list[str]:
    return [key for key in keys if key in overrides]
