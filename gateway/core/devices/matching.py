"""Which nodes a pod may run on, as kube-scheduler judges labels, affinity and taints."""

from collections.abc import Iterable, Mapping

from gateway.core.resources.node_rules import Requirement, Taint, Toleration

# PreferNoSchedule only lowers a node's score, so a pod may be placed there all the same.
BLOCKING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


def matches_labels(labels: Mapping[str, str], wanted: Iterable[tuple[str, str]]) -> bool:
    """Whether every wanted label has exactly that value."""
    return all(labels.get(key) == value for key, value in wanted)


def matches_affinity(labels: Mapping[str, str], terms: tuple[tuple[Requirement, ...], ...]) -> bool:
    """Whether any term holds with all its requirements; no terms mean no rule."""
    # nodeSelectorTerms are ORed, the expressions of a term ANDed; an empty term matches nothing
    # (Kubernetes core/v1 NodeSelectorTerm).
    return not terms or any(
        all(meets(labels, requirement) for requirement in term) for term in terms if term
    )


def meets(labels: Mapping[str, str], requirement: Requirement) -> bool:
    """Whether labels meet one expression; Gt and Lt compare whole numbers."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "In":
            return value in requirement.values
        case "NotIn":
            # A missing label is in no list, so it passes: so does Kubernetes judge NotIn.
            return value not in requirement.values
        case operator:
            return _compares(value, operator, requirement.values)


def _compares(value: str | None, operator: str, values: tuple[str, ...]) -> bool:
    try:
        left, right = int(value or ""), int(values[0] if values else "")
    # kube-scheduler parses both sides as integers, and a rule it cannot parse matches no node.
    except ValueError:
        return False
    return left > right if operator == "Gt" else left < right


def untolerated(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> Taint | None:
    """Give the first taint that keeps the pod away; None when all are tolerated."""
    for taint in taints:
        if taint.effect in BLOCKING_EFFECTS and not any(
            tolerates(toleration, taint) for toleration in tolerations
        ):
            return taint
    return None


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether one toleration covers one taint (Kubernetes core/v1 rules)."""
    # An empty effect stands for all of them, an empty key with Exists for every taint.
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.operator == "Exists":
        return not toleration.key or toleration.key == taint.key
    return toleration.key == taint.key and toleration.value == taint.value
