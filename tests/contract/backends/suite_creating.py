"""Conformance: creating, finding, and what is not ours."""

import pytest

from gateway.backends.base import ForeignObject, ObjectOutcome
from gateway.errors import ClusterRejected
from tests.contract.backends.harness import Harness, Kind
from tests.contract.backends.steps import Run


class CreatingSuite:
    """Needs a `harness` fixture in the subclass."""

    def test_an_object_is_created_suspended(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.LONG))

        seen = run.seen()

        assert seen.exists
        assert seen.is_suspended
        assert seen.uid == run.ref.uid
        assert seen.outcome is ObjectOutcome.UNDECIDED
        assert seen.are_pods_gone

    def test_creating_again_adopts_the_same_object(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.LONG))

        assert run.backend.create(run.launch) == run.ref
        assert harness.make_backend().create(run.launch) == run.ref

    def test_nothing_is_found_before_it_is_created(self, harness: Harness) -> None:
        assert harness.make_backend().find(harness.launch(Kind.LONG)) is None

    def test_an_object_is_found_by_a_restarted_gateway(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.LONG))

        assert harness.make_backend().find(run.launch) == run.ref

    def test_two_launches_are_two_objects(self, harness: Harness) -> None:
        first = Run(harness, harness.launch(Kind.LONG))
        second = Run(harness, harness.launch(Kind.LONG))

        assert first.ref.uid != second.ref.uid

    def test_a_foreign_object_is_neither_adopted_nor_found(self, harness: Harness) -> None:
        launch = harness.launch(Kind.LONG)
        uid = harness.plant_foreign(launch)
        backend = harness.make_backend()

        with pytest.raises(ForeignObject):
            backend.create(launch)
        with pytest.raises(ForeignObject):
            backend.find(launch)
        assert harness.uid_in_cluster(launch) == uid

    def test_an_object_that_took_the_name_later_is_not_deleted(self, harness: Harness) -> None:
        run = Run(harness, harness.launch(Kind.LONG))
        harness.delete_externally(run.launch)
        harness.wait_until(
            lambda: harness.uid_in_cluster(run.launch) is None, "the name to be free"
        )
        uid = harness.plant_foreign(run.launch)

        run.backend.stop(run.launch, run.ref)
        run.backend.delete(run.ref)
        harness.pass_time()

        assert harness.uid_in_cluster(run.launch) == uid
        assert not run.seen().exists

    def test_a_manifest_the_cluster_refuses_is_rejected_for_good(self, harness: Harness) -> None:
        launch = harness.launch(Kind.REJECTED)
        backend = harness.make_backend()

        with pytest.raises(ClusterRejected) as caught:
            backend.create(launch)
        assert not isinstance(caught.value, ForeignObject)
        assert caught.value.detail
        assert backend.find(launch) is None

    def test_the_cluster_says_that_it_is_reachable(self, harness: Harness) -> None:
        assert harness.make_backend().is_reachable()

    def test_the_inventory_holds_every_planned_device(self, harness: Harness) -> None:
        launch = harness.launch(Kind.LONG)
        nodes = {node.name: node for node in harness.make_backend().inventory()}

        for pod in launch.pods:
            known = {(device.kind, device.ordinal) for device in nodes[pod.node].devices}
            assert {(device.kind, device.ordinal) for device in pod.devices} <= known
            assert pod.devices
