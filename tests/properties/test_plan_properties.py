"""What holds for every plan, whatever the state."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.admission import CyclePlan, Policies, Snapshot, never_fits, plan_cycle
from gateway.core.admission.trial import tree_of
from gateway.core.queues.tree import QuotaTree
from gateway.core.vocabulary import PairRule, Reason
from tests.builders import a_fleet
from tests.properties.applying import applied, joined, pods_of, request_of
from tests.properties.strategies import Dice, a_random_node, seeds, shuffled, snapshots

BUDGET = 1000
usual = settings(max_examples=100, deadline=None)


def plan(snapshot: Snapshot, budget: int = BUDGET) -> CyclePlan:
    return plan_cycle(snapshot, Policies(), now_us=0, budget=budget)


@given(snapshots())
@usual
def test_no_device_and_no_amount_is_given_twice(snapshot: Snapshot) -> None:
    applied(snapshot, plan(snapshot))


@given(snapshots())
@usual
def test_a_gang_gets_exactly_what_it_asks_for_or_nothing(snapshot: Snapshot) -> None:
    for admit in plan(snapshot).admits:
        request = request_of(snapshot, admit.job_id)
        asked = [(each.name, i) for each in request.pod_sets for i in range(each.count)]
        assert sorted((p.pod_set, p.index) for p in admit.placements) == sorted(asked)
        for pod_set, row, gpu_mask, nic_mask in pods_of(snapshot, admit):
            wanted = dict(pod_set.per_pod)
            assert gpu_mask.bit_count() == wanted.get("gpu", 0)
            assert nic_mask.bit_count() == wanted.get("rdma", 0)
            assert snapshot.fleet.is_available[row]
        charged: dict[str, int] = {}
        for charge in admit.charges:
            charged[charge.resource] = charged.get(charge.resource, 0) + charge.amount
        assert charged == dict(request.total)


@given(snapshots())
@usual
def test_gpus_of_one_gang_are_of_one_flavor_and_nodes_of_the_charged_ones(
    snapshot: Snapshot,
) -> None:
    labels = {flavor.name: set(flavor.node_labels) for flavor in snapshot.flavors}
    for admit in plan(snapshot).admits:
        flavors = {charge.flavor for charge in admit.charges}
        assert len({c.flavor for c in admit.charges if c.resource == "gpu"}) <= 1
        for _, row, _, _ in pods_of(snapshot, admit):
            assert any(labels[name] <= set(snapshot.fleet.labels[row]) for name in flavors)


@given(snapshots())
@usual
def test_two_pods_with_one_host_port_never_share_a_node(snapshot: Snapshot) -> None:
    taken = [
        (row, port)
        for admit in plan(snapshot).admits
        for pod_set, row, _, _ in pods_of(snapshot, admit)
        for port in pod_set.host_ports
    ]
    assert len(taken) == len(set(taken))


def limits_hold(before: QuotaTree, after: QuotaTree) -> bool:
    """Whether each node of the tree is within its limits, or no worse than it was."""
    nodes = [(before.queues[n], node) for n, node in after.queues.items()]
    nodes += [(before.cohorts[n], node) for n, node in after.cohorts.items()]
    for old, node in nodes:
        for pair in node.used:
            used, was = node.used[pair], old.used.get(pair, 0)
            root = node.parent is None
            most = node.subtree.get(pair, 0) + (0 if root else node.borrowing_limit(pair))
            if used > max(most, was):
                return False
    return True


@given(snapshots())
@usual
def test_quota_and_borrowing_limits_hold_on_every_path(snapshot: Snapshot) -> None:
    after = tree_of(applied(snapshot, plan(snapshot)))
    assert limits_hold(tree_of(snapshot), after)


@given(snapshots(), st.integers(0, 5))
@usual
def test_each_waiting_job_gets_exactly_one_decision(snapshot: Snapshot, budget: int) -> None:
    answer = plan(snapshot, budget)
    decided = [a.job_id for a in answer.admits] + [h.job_id for h in answer.holds]
    assert sorted(decided) == snapshot.waiting.job_id.tolist()
    known = {(hold.queue, hold.class_index): hold.reason for hold in answer.class_holds}
    assert {(h.queue, h.class_index): h.reason for h in answer.holds} == known
    versions = dict(zip(snapshot.waiting.job_id, snapshot.waiting.version, strict=True))
    told = [(a.job_id, a.version) for a in answer.admits]
    told += [(h.job_id, h.version) for h in answer.holds]
    assert all(versions[job_id] == version for job_id, version in told)


@given(snapshots(), st.data())
@usual
def test_shuffled_input_gives_the_same_plan(snapshot: Snapshot, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(snapshot.waiting))))
    assert plan(shuffled(snapshot, order)) == plan(snapshot)


@given(snapshots())
@usual
def test_a_plan_that_is_applied_leaves_nothing_to_admit(snapshot: Snapshot) -> None:
    without_ports = replace(
        snapshot,
        waiting=replace(
            snapshot.waiting,
            classes=tuple(
                replace(gang, pod_sets=tuple(replace(p, host_ports=()) for p in gang.pod_sets))
                for gang in snapshot.waiting.classes
            ),
        ),
    )
    after = applied(without_ports, plan(without_ports))
    assert plan(after).admits == ()


@given(snapshots(), seeds)
@usual
def test_another_node_never_takes_the_first_admission_away(snapshot: Snapshot, seed: int) -> None:
    first = plan(snapshot, budget=1).admits
    row, devices = a_random_node(Dice(seed), len(snapshot.fleet))
    larger = replace(snapshot, fleet=joined(snapshot.fleet, a_fleet([row], devices)))
    admitted = {admit.job_id for admit in plan(larger, budget=1).admits}
    assert {admit.job_id for admit in first} <= admitted


@given(snapshots())
@usual
def test_a_preferred_rule_never_blocks_what_rule_none_admits(snapshot: Snapshot) -> None:
    def ruled(rule: PairRule) -> Snapshot:
        classes = tuple(
            replace(
                gang,
                pod_sets=tuple(
                    replace(p, pair=rule, is_pair_required=False) for p in gang.pod_sets
                ),
            )
            for gang in snapshot.waiting.classes
        )
        return replace(snapshot, waiting=replace(snapshot.waiting, classes=classes))

    first = plan(ruled(PairRule.NONE), budget=1).admits
    preferred = plan(ruled(PairRule.SWITCH), budget=1).admits
    assert [admit.job_id for admit in preferred] == [admit.job_id for admit in first]


@given(snapshots())
@usual
def test_what_never_fits_is_not_admitted_and_the_reason_agrees(snapshot: Snapshot) -> None:
    answer = plan(snapshot)
    for admit in answer.admits:
        assert never_fits(snapshot, admit.queue, request_of(snapshot, admit.job_id)) is None
    for hold in answer.class_holds:
        if hold.reason is Reason.NEVER_FITS:
            request = snapshot.waiting.classes[hold.class_index]
            assert never_fits(snapshot, hold.queue, request) is not None


@given(snapshots())
@usual
def test_every_hold_says_why(snapshot: Snapshot) -> None:
    for hold in plan(snapshot).class_holds:
        assert hold.causes
        assert all(cause.detail for cause in hold.causes)
        assert all(sentence.strip() == sentence and sentence for sentence in hold.unblock)
        is_quota = hold.reason in {Reason.OVER_QUOTA, Reason.OVER_BORROWING_LIMIT}
        assert bool(hold.limiting) == is_quota


@given(snapshots())
@usual
def test_a_job_alone_that_fits_is_started_at_once(snapshot: Snapshot) -> None:
    answer = plan(snapshot)
    behind = {Reason.BEHIND_PRIORITY, Reason.BEHIND_FAIR_SHARE}
    for hold in [each for each in answer.holds if each.reason in behind]:
        alone = snapshot.waiting.job_id == hold.job_id
        waiting = snapshot.waiting.take(alone)
        assert len(plan(replace(snapshot, waiting=waiting)).admits) == 1
