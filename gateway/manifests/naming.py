"""Checks a job's name and namespace, and the labels and annotations of an object.

The operator makes a service for each replica, named after the job; a name that leaves no room for
that would be accepted by the cluster and then never work (Kubernetes DNS labels, RFC 1035).
"""

import re
from typing import Final

from gateway.core.vocabulary import LABEL_PREFIX
from gateway.errors import UnsafeTemplate
from gateway.manifests.fields import dns_label
from gateway.manifests.spot import Spot

# 63 - len("-worker-") - the digits of the last index - room for the attempt's own suffix:
# 48 characters for up to 10 workers, 47 up to 100, 46 up to 1,000.
MAX_DNS_LABEL: Final = 63
ROOM_FOR_ATTEMPT: Final = 6
_SERVICE: Final = len("-worker-")
# RFC 1035, not RFC 1123: a Service's name may not begin with a digit, and the operator names
# the Services after the job. A PyTorchJob `3d-unet` would be stored and never find its Master.
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
# An empty value is a value: labels are often mere marks.
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_KEY: Final = re.compile(
    r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)


def longest_name(workers: int) -> int:
    """Give how long a name may be so that every replica's service and the attempt still fit."""
    # Replica indexes begin at 0: ten workers still need one digit.
    digits = len(str(max(workers - 1, 0)))
    return MAX_DNS_LABEL - _SERVICE - digits - ROOM_FOR_ATTEMPT


def is_fitting_name(name: str, workers: int) -> bool:
    """Whether `require_name` would take this name."""
    # `fullmatch`, because `$` would also match before a line break at the end.
    return len(name) <= longest_name(workers) and _NAME.fullmatch(name) is not None


def require_name(metadata: Spot, workers: int) -> str:
    """Give the job's name. Raises InvalidInput when missing, malformed or too long."""
    spot = metadata.at("name")
    name = spot.text()
    limit = longest_name(workers)
    if not name:
        raise spot.refuse("the job has no name", hint=_nameless_hint(metadata))
    if not _NAME.fullmatch(name):
        raise spot.refuse(
            f"{name[:80]!r} is not a name that services can have",
            allowed=("a lower case letter, then lower case letters, digits and dashes",),
            hint=_rename_hint(name, limit),
        )
    spot.demand(
        len(name) <= limit,
        f"the name has {len(name)} characters; with {workers} workers at most {limit} leave "
        "room for the names of its attempts and of each replica's service",
        f"shorten it, for example to {name[:limit].rstrip('-')!r}",
        allowed=(f"at most {limit} characters",),
    )
    return name


def _nameless_hint(metadata: Spot) -> str:
    # The server would make up a name at each create; a retry could then never meet its own object.
    if metadata.at("generateName").is_missing:
        return "give metadata.name"
    return "generateName is not used here: give metadata.name"


def _rename_hint(name: str, limit: int) -> str:
    suggestion = re.sub(r"[^a-z0-9]+", "-", name.lower()).lstrip("-0123456789")
    suggestion = suggestion[:limit].rstrip("-")
    return f"did you mean {suggestion!r}?" if suggestion else "start with a letter"


def require_namespace(metadata: Spot) -> str:
    """Give the namespace. Raises InvalidInput when it is no DNS label."""
    return dns_label(metadata.at("namespace"))


def require_keys(metadata: Spot) -> None:
    """Check the keys and types of labels and annotations, and the values of labels."""
    for key, spot in metadata.at("labels").entries():
        _require_key(key, spot, "labels")
        _require_label_value(spot)
    for key, spot in metadata.at("annotations").entries():
        _require_key(key, spot, "annotations")
        spot.text_value()


def _require_key(key: str, spot: Spot, kind: str) -> None:
    spot.demand(
        _KEY.fullmatch(key) is not None,
        f"{key[:80]!r} is not a key that {kind} can have",
        "rename the key",
        allowed=("[prefix/]name of letters, digits, '-', '_' and '.'",),
    )


def _require_label_value(spot: Spot) -> None:
    value = spot.text_value()
    spot.demand(
        _LABEL_VALUE.fullmatch(value) is not None,
        f"{value[:80]!r} is not a value that a label can have",
        "shorten or rename it, or make it an annotation",
        allowed=("at most 63 letters, digits, '-', '_' and '.'",),
    )


def refuse_reserved(metadata: Spot, kinds: tuple[str, ...]) -> None:
    """Refuse keys under the gateway's own prefix; it writes its plan there itself."""
    for kind in kinds:
        for key, spot in metadata.at(kind).entries():
            spot.demand(
                not key.startswith(LABEL_PREFIX),
                f"{key} is reserved: the gateway writes {LABEL_PREFIX} keys itself",
                "remove it; fields of the gateway are annotations of the PyTorchJob",
                kind=UnsafeTemplate,
            )
