"""Reads where a pod may run: selector, required node affinity, tolerations, host ports.

Rules that relate pods to each other are refused: the planner places whole gangs and could not
promise them. Source: Kubernetes core/v1 NodeSelector and Toleration.
"""

import re
from typing import Any, Final, cast

from gateway.manifests.known_fields import AFFINITY, refuse_unknown
from gateway.manifests.spot import Spot
from gateway.schemas.job_spec import NodeRequirement, TolerationSpec

OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_VALUES_HINT: Final = {
    "In": "give one value or more",
    "NotIn": "give one value or more",
    "Exists": "remove values",
    "DoesNotExist": "remove values",
    "Gt": "give one whole number as text",
    "Lt": "give one whole number as text",
}
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
        rules = affinity.at(kind, _REQUIRED)
        rules.demand(
            not rules.items(),
            f"a required {kind} cannot be promised for a gang that is placed as a whole",
            "make it preferred, or remove it: the gateway packs the gang itself",
        )
    for rule in pod.at("topologySpreadConstraints").items():
        mode = rule.at("whenUnsatisfiable")
        mode.demand(
            mode.value == "ScheduleAnyway",
            "a hard spread cannot be promised for a gang that is placed as a whole",
            "write whenUnsatisfiable: ScheduleAnyway, or remove the constraint",
            allowed=("ScheduleAnyway",),
        )
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
    if required.is_missing:
        return ()
    terms = required.at("nodeSelectorTerms")
    if not terms.items():
        raise terms.refuse("a required node affinity has no term", hint="add a term or remove it")
    return tuple(_term(item) for item in terms.items())


def _term(term: Spot) -> tuple[NodeRequirement, ...]:
    expressions, by_name = term.at("matchExpressions"), term.at("matchFields")
    by_name.demand(
        not by_name.items(),
        "matchFields binds to single nodes by name",
        "use matchExpressions on the label kubernetes.io/hostname",
    )
    expressions.demand(
        bool(expressions.items()), "an empty term matches no node", "add an expression"
    )
    return tuple(_requirement(item) for item in expressions.items())


def _requirement(spot: Spot) -> NodeRequirement:
    operator = spot.at("operator").choice(OPERATORS)
    if not operator:
        raise spot.at("operator").wrong_type("an operator")
    values = tuple(spot.at("values").texts())
    if not spot.at("key").text():
        raise spot.at("key").refuse("an expression needs the key of a label", hint="give the key")
    is_number = len(values) == 1 and re.fullmatch(r"[-+]?[0-9]{1,18}", values[0]) is not None
    is_right = {"In": bool(values), "NotIn": bool(values), "Gt": is_number, "Lt": is_number}
    if not is_right.get(operator, not values):
        raise spot.at("values").refuse(
            f"these values do not go with {operator}", hint=_VALUES_HINT[operator]
        )
    return NodeRequirement.model_validate(
        {"key": spot.at("key").text(), "operator": operator, "values": values}
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
    is_on_host = pod.at("hostNetwork").flag()
    ports: set[int] = set()
    for container in (*pod.at("containers").items(), *pod.at("initContainers").items()):
        declared = container.at("ports").items()
        for port in declared:
            number = port.at("containerPort" if is_on_host else "hostPort").value
            if number:
                ports.add(cast(int, number))
        is_opened = container.at("name").value == "pytorch" and not any(
            port.at("name").value == "pytorchjob-port" for port in declared
        )
        if is_on_host and is_opened:
            ports.add(OPERATOR_PORT)
    return tuple(sorted(ports))
