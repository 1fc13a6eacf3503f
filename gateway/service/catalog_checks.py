"""What a definition must satisfy, given all the others. Every refusal says where and what instead.

Checks only: nothing here reads or writes the database.
"""

import re
from collections.abc import Collection, Iterable, Mapping

from gateway.errors import InvalidInput
from gateway.schemas.definitions import CohortSpec, FlavorSpec, QueueSpec, QuotaSpec
from gateway.schemas.queue_rules import DatedChangeSpec
from gateway.schemas.suggesting import did_you_mean
from gateway.service.catalog import Catalog, Owner, Spec
from gateway.service.catalog_rule_checks import check_changes, check_order

RESOURCES = ("cpu", "gpu", "memory", "pods", "rdma", "ephemeral-storage")
VENDOR_NAMES = {"nvidia.com/gpu": "gpu", "amd.com/gpu": "gpu"}
EXTENDED = re.compile(
    r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9][-A-Za-z0-9_.]*|hugepages-\w+)$"
)
NAMESPACE = re.compile(r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")
NAMESPACE_OR_ALL = re.compile(rf"\*\Z|{NAMESPACE.pattern}")


def check_spec(catalog: Catalog, spec: Spec, pointer: str = "") -> None:
    """Check one counted definition against the catalog that is to be.

    Raises:
        InvalidInput: with the pointer to what is wrong.
    """
    if isinstance(spec, QueueSpec):
        _check_queue(catalog, spec, pointer)
    elif isinstance(spec, CohortSpec):
        _check_cohort(catalog, spec, pointer)


def _check_queue(catalog: Catalog, spec: QueueSpec, pointer: str) -> None:
    if spec.cohort is not None:
        _require_known("cohort", spec.cohort, catalog.cohorts, f"{pointer}/cohort")
    for index, flavor in enumerate(spec.flavors):
        _require_known("flavor", flavor, catalog.flavors, f"{pointer}/flavors/{index}")
    if spec.priority_min > spec.priority_max:
        raise InvalidInput(
            f"priority_min {spec.priority_min} is above priority_max {spec.priority_max}",
            pointer=f"{pointer}/priority_min",
            value=spec.priority_min,
            allowed=(f"at most {spec.priority_max}",),
            hint="swap them; a higher number runs sooner",
        )
    _check_namespaces(spec, pointer)
    for index, name in enumerate(spec.priority_classes):
        place = f"{pointer}/priority_classes/{index}"
        _require_known("priority class", name, catalog.priority_classes, place)
    check_order(spec.order, f"{pointer}/order")
    _check_quotas(catalog, spec, pointer)


def _check_namespaces(spec: QueueSpec, pointer: str) -> None:
    _check_names(spec.namespaces, NAMESPACE_OR_ALL, f"{pointer}/namespaces")
    _check_names(spec.default_for, NAMESPACE, f"{pointer}/default_for")
    if "*" in spec.namespaces:
        return
    shut_out = sorted(set(spec.default_for) - set(spec.namespaces))
    if shut_out:
        raise InvalidInput(
            f"queue {spec.name} is the default of {shut_out[0]}, but does not take its jobs",
            pointer=f"{pointer}/default_for",
            value=shut_out[0],
            allowed=spec.namespaces,
            hint=f"add {shut_out[0]} to namespaces",
        )


def _check_names(names: Iterable[str], pattern: re.Pattern[str], pointer: str) -> None:
    for index, name in enumerate(names):
        if not pattern.match(name):
            raise InvalidInput(
                f"{name!r} is no namespace name",
                pointer=f"{pointer}/{index}",
                value=name,
                hint="lower-case letters, digits and dashes, at most 63; '*' means all",
            )


def _check_cohort(catalog: Catalog, spec: CohortSpec, pointer: str) -> None:
    if spec.parent is not None:
        _require_known("cohort", spec.parent, catalog.cohorts, f"{pointer}/parent")
        _refuse_cycle(catalog, spec, pointer)
    _check_quotas(catalog, spec, pointer)


def _refuse_cycle(catalog: Catalog, spec: CohortSpec, pointer: str) -> None:
    path, above = [spec.name], spec.parent
    while above is not None and above in catalog.cohorts:
        path.append(above)
        if above == spec.name:
            raise InvalidInput(
                f"cohort {spec.name} would be its own ancestor: {' -> '.join(path)}",
                pointer=f"{pointer}/parent",
                value=spec.parent,
                hint="choose a parent outside this circle, or none",
            )
        # Without this the walk would go round for ever in somebody else's circle.
        if above in path[:-1]:
            return  # a circle further up, told where it is closed
        above = catalog.cohorts[above].parent


def _check_quotas(catalog: Catalog, spec: Owner, pointer: str) -> None:
    seen: set[tuple[str, str]] = set()
    for index, quota in enumerate(spec.quotas):
        place = f"{pointer}/quotas/{index}"
        _check_row(catalog, spec, quota, place)
        _check_lending(quota, place)
        if (quota.flavor, quota.resource) in seen:
            raise InvalidInput(
                f"two quotas for {quota.resource} of flavor {quota.flavor}",
                pointer=place,
                value=quota.resource,
                hint="keep one of them",
            )
        seen.add((quota.flavor, quota.resource))
    for index, change in enumerate(spec.changes):
        _check_row(catalog, spec, change, f"{pointer}/changes/{index}")
    check_changes(spec, pointer)


def _check_row(
    catalog: Catalog, owner: Owner, row: QuotaSpec | DatedChangeSpec, place: str
) -> None:
    _require_known("flavor", row.flavor, catalog.flavors, f"{place}/flavor")
    _check_resource(row.resource, f"{place}/resource")
    above = owner.cohort if isinstance(owner, QueueSpec) else owner.parent
    if above is None:
        _refuse_limits(row, place)


def _check_resource(resource: str, pointer: str) -> None:
    if _is_countable(resource):
        return
    raise InvalidInput(
        f"{resource!r} is no resource that quota counts",
        pointer=pointer,
        value=resource,
        allowed=(*RESOURCES, "an extended resource such as example.com/fpga"),
        hint=did_you_mean(
            VENDOR_NAMES.get(resource, resource), RESOURCES, "extended resources contain a slash"
        ),
    )


def _is_countable(resource: str) -> bool:
    # Quota counts GPUs by one name; under the vendor's it would count nothing at all.
    if resource in VENDOR_NAMES:
        return False
    return resource in RESOURCES or EXTENDED.match(resource) is not None


def _check_lending(quota: QuotaSpec, pointer: str) -> None:
    if quota.lending_limit is not None and int(quota.lending_limit) > int(quota.nominal):
        raise InvalidInput(
            f"lending_limit {quota.lending_limit} is above nominal {quota.nominal}",
            pointer=f"{pointer}/lending_limit",
            value=quota.lending_limit,
            allowed=(f"0 to {quota.nominal}",),
            hint="nobody can lend more than it owns; leave it out to lend all",
        )


def _refuse_limits(quota: QuotaSpec | DatedChangeSpec, pointer: str) -> None:
    for field in ("borrowing_limit", "lending_limit"):
        if getattr(quota, field) is not None:
            raise InvalidInput(
                f"{field} means nothing without a cohort above",
                pointer=f"{pointer}/{field}",
                value=getattr(quota, field),
                hint="name a cohort, or leave the limit out",
            )


def _require_known(kind: str, name: str, known: Collection[str], pointer: str) -> None:
    if name in known:
        return
    raise InvalidInput(
        f"{kind} {name!r} does not exist",
        pointer=pointer,
        value=name,
        allowed=tuple(sorted(known)),
        hint=did_you_mean(name, known, f"create the {kind} first"),
    )


def _matching(flavors: Mapping[str, FlavorSpec], labels: Mapping[str, str]) -> list[str]:
    return sorted(
        name for name, spec in flavors.items() if spec.node_labels.items() <= labels.items()
    )


def refuse_shared_nodes(
    flavors: Mapping[str, FlavorSpec],
    labels: Mapping[str, Mapping[str, str]],
    places: Mapping[str, str],
) -> None:
    """Refuse flavors of which two match one known node: quota would count it twice.

    `places` says where the author wrote which flavor; the refusal points at one of those.

    Raises:
        InvalidInput: naming the node and both flavors.
    """
    for node, has in labels.items():
        matching = _matching(flavors, has)
        # The engine would take the first by name; an admin should hear of it before that.
        if len(matching) > 1:
            written = next((name for name in reversed(matching) if name in places), matching[1])
            raise InvalidInput(
                f"node {node} would belong to the flavors {matching[0]} and {matching[1]}",
                pointer=f"{places.get(written, '')}/node_labels",
                value=dict(flavors[written].node_labels),
                hint="give both flavors labels that tell their nodes apart, "
                "in one apply, or delete one of them first",
            )
