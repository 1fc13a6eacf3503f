"""Applies what the caller says beside the document: flags of the command line, keyword arguments.

Overrides have the short form's field names and win over the document. The gateway's own fields are
settled elsewhere; here are name, namespace, labels, annotations and the parts of the short form.
"""

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
    if "manifest" in data:
        raise (
            Spot(data)
            .at("manifest")
            .refuse("a manifest cannot be overridden", hint="submit that manifest instead")
        )
    return {key.replace("-", "_"): value for key, value in data.items()}


def apply_to_short_form(document: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """Give the short form with image, command, workers and so on replaced; env is merged."""
    changed = dict(document)
    for key in TEMPLATE_KEYS:
        if key not in overrides:
            continue
        old, new = changed.get(key), overrides[key]
        if key in _MERGED and isinstance(old, dict) and isinstance(new, dict):
            new = {**old, **new}
        changed[key] = new
    return changed


def refuse_template_keys(overrides: dict[str, Any]) -> None:
    """Refuse overrides that only the short form can take."""
    for key in TEMPLATE_KEYS:
        if key in overrides:
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
    spot = Spot(manifest).at("metadata")
    if spot.is_missing:
        manifest["metadata"] = {}
    metadata = Spot(manifest).at("metadata")
    metadata.fields()
    given = Spot(overrides)
    for key in ("name", "namespace"):
        if key in overrides:
            metadata.value[key] = given.at(key).text()
    for key in ("labels", "annotations"):
        if key in overrides:
            merged = {**metadata.at(key).fields(), **given.at(key).text_map()}
            metadata.value[key] = merged
