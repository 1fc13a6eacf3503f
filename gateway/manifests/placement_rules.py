"""Reads where a pod may run: selector, required node affinity, tolerations, host ports.

Rules that relate pods to each other are refused: the planner places whole gangs and could not
promise them. Source: Kubernetes core/v1 NodeSelector and Toleration.
"""

import re
from collections.abc import Callable
from itertools import chain
from operator import not_
from typing import Any, Final

from gateway.manifests.known_fields import AFFINITY, refuse_unknown
from gateway.manifests.spot import Spot
from gateway.schemas.job_spec import NodeRequirement, TolerationSpec


def _is_one_number(values: tuple[str, ...]) -> bool:
    return len(values) == 1 and re.fullmatch(r"[-+]?[0-9]{1,18}", values[0]) is not None


_SOME: Final = (bool, "give one value or more")
_NONE: Final = (not_, "remove values")
_NUMBER: Final = (_is_one_number, "give one whole number as text")
_VALUES: Final[dict[str, tuple[Callable[[tuple[str, ...]], bool], str]]] = {
    "In": _SOME,
    "NotIn": _SOME,
    "Exists": _NONE,
    "DoesNotExist": _NONE,
    "Gt": _NUMBER,
    "Lt": _NUMBER,
}
"""What the values of each operator must be, and the hint when they are not."""
OPERATORS: Final = tuple(_VALUES)
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
SCHEDULER: Final = "default-scheduler"
OPERATOR_PORT: Final = 23456
"""Opened on the container `pytorch` unless it names a port `pytorchjob-port`."""
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
NodeTerms = tuple[tuple[NodeRequirement, ...], ...]


def placement_of(pod: Spot) -> dict[str, Any]:
    """Give the fields of a PodSet that say where its pods may run."""
    _refuse_pod_rules(pod)
    return {
        "node_selector": pod.at("nodeSelector").text_map(),
        "affinity": _node_affinity(pod.at("affinity", "nodeAffinity", _REQUIRED)),
        "tolerations": tuple(_toleration(item) for item in pod.at("tolerations").items()),
        "host_ports": _host_ports(pod),
    }


def _refuse_pod_rules(pod: Spot) -> None:
    affinity = pod.at("affinity")
    refuse_unknown(affinity, AFFINITY)
    for kind in ("podAffinity", "podAntiAffinity"):
        # Preferred rules pass: they only rank nodes, and the gates leave one node to choose from.
        rules = affinity.at(kind, _REQUIRED)
        rules.demand(
            not rules.items(),
            f"a required {kind} cannot be promised for a gang that is placed as a whole",
            "make it preferred, or remove it: the gateway packs the gang itself",
        )
    for rule in pod.at("topologySpreadConstraints").items():
        mode = rule.at("whenUnsatisfiable")
        mode.demand(
            # Missing is not fine: the API has no default for it and would refuse the pod.
            mode.value == "ScheduleAnyway",
            "a hard spread cannot be promised for a gang that is placed as a whole",
            "write whenUnsatisfiable: ScheduleAnyway, or remove the constraint",
            allowed=("ScheduleAnyway",),
        )
    # The pin to the chosen node is a required node affinity, which this scheduler obeys.
    scheduler, gates = pod.at("schedulerName"), pod.at("schedulingGates")
    scheduler.demand(
        scheduler.text() in {"", SCHEDULER},
        f"the scheduler {scheduler.text()[:80]!r} would place the pods a second time",
        "remove schedulerName: the gateway chooses the nodes",
        allowed=(SCHEDULER,),
    )
    gates.demand(
        not gates.items(),
        "a gate of somebody else would keep the gang from starting on its devices",
        "remove it; start the job held instead",
    )


def _node_affinity(required: Spot) -> NodeTerms:
    terms = required.at("nodeSelectorTerms")
    terms.demand(
        required.is_missing or bool(terms.items()),
        "a required node affinity has no term",
        "add a term or remove it",
    )
    # Terms are alternatives, the expressions of one term all hold (core/v1 NodeSelectorTerm).
    return tuple(map(_term, terms.items()))


def _term(term: Spot) -> tuple[NodeRequirement, ...]:
    expressions, by_name = term.at("matchExpressions"), term.at("matchFields")
    by_name.demand(
        not by_name.items(),
        "matchFields binds to single nodes by name",
        "use matchExpressions on the label kubernetes.io/hostname",
    )
    # An empty term matches nothing, not everything: the job would wait for ever.
    expressions.demand(
        bool(expressions.items()), "an empty term matches no node", "add an expression"
    )
    return tuple(map(_requirement, expressions.items()))


def _requirement(spot: Spot) -> NodeRequirement:
    operator = spot.at("operator").choice(OPERATORS)
    if not operator:
        raise spot.at("operator").wrong_type("an operator")
    key, values = spot.at("key"), tuple(spot.at("values").texts())
    key.demand(bool(key.text()), "an expression needs the key of a label", "give the key")
    is_fitting, hint = _VALUES[operator]
    spot.at("values").demand(is_fitting(values), f"these values do not go with {operator}", hint)
    return NodeRequirement.model_validate(
        {"key": key.text(), "operator": operator, "values": values}
    )


def _toleration(spot: Spot) -> TolerationSpec:
    key, value = spot.at("key").text(), spot.at("value").text()
    operator = spot.at("operator").choice(("Equal", "Exists"), default="Equal")
    is_wildcard = operator == "Exists"
    spot.demand(
        bool(key) or is_wildcard,
        "a toleration without a key tolerates everything, and says so by operator Exists",
        "give the key, or write operator: Exists",
    )
    is_fitting = not (value and is_wildcard)
    spot.at("value").demand(is_fitting, "Exists takes no value", "remove the value")
    effect = spot.at("effect")
    return TolerationSpec.model_validate(
        {
            "key": key,
            "operator": operator,
            "value": value,
            "effect": effect.choice(EFFECTS) if effect.text() else "",
        }
    )


def _host_ports(pod: Spot) -> tuple[int, ...]:
    """Give the ports that a pod takes of its node; on the host network every port is one."""
    containers = [*pod.at("containers").items(), *pod.at("initContainers").items()]
    # On the host network the API server copies every containerPort into hostPort, so two such pods
    # can share a node only if all their ports differ.
    if not pod.at("hostNetwork").flag():
        return tuple(sorted(_declared(containers, "hostPort")))
    ports = _declared(containers, "containerPort")
    if any(map(_gets_operator_port, containers)):
        ports.add(OPERATOR_PORT)
    return tuple(sorted(ports))


def _declared(containers: list[Spot], kind: str) -> set[int]:
    """Give the numbers of the ports that are declared; 0 stands for none."""
    ports = chain.from_iterable(container.at("ports").items() for container in containers)
    return {port.at(kind).value for port in ports} - {None, 0}


def _gets_operator_port(container: Spot) -> bool:
    names = [port.at("name").value for port in container.at("ports").items()]
    return container.at("name").value == "pytorch" and "pytorchjob-port" not in names
