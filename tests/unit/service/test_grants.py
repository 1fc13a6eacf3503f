"""From a plan's admission to the grant, and the names of launched objects."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.admission import Admit, PodPlacement
from gateway.core.jobs.request import PodSetRequest, RequestClass
from gateway.core.queues.definitions import Flavor
from gateway.core.resources import amounts
from gateway.core.resources.node_rules import Toleration
from gateway.core.vocabulary import DeviceKind
from gateway.service.grants import MAX_OBJECT_NAME, grant_pods, object_name

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def test_pods_are_ranked_as_placed_and_devices_are_not_amounts() -> None:
    per_pod = amounts({"cpu": 500, "memory": 7, "gpu": 2, "rdma": 1, "example.com/fpga": 3})
    request = RequestClass(
        pod_sets=(
            PodSetRequest(name="Master", count=1, per_pod=amounts({"cpu": 100})),
            PodSetRequest(name="Worker", count=1, per_pod=per_pod),
        )
    )
    admit = Admit(
        job_id=1,
        version=1,
        queue="default",
        class_index=0,
        placements=(
            PodPlacement(pod_set="Master", index=0, node_id=7, gpu_mask=0, nic_mask=0),
            PodPlacement(pod_set="Worker", index=0, node_id=8, gpu_mask=0b101, nic_mask=0b10),
        ),
        charges=(),
        flavors=(("Master", "cpu"), ("Worker", "h100")),
    )
    tolerated = Toleration(key="pool", value="training")
    flavors = {"cpu": Flavor(name="cpu"), "h100": Flavor(name="h100", tolerations=(tolerated,))}

    master, worker = grant_pods(admit, request, flavors)

    assert (master.rank, master.node_id, dict(master.amounts)) == (0, 7, {"cpu": 100, "pods": 1})
    assert worker.rank == 1
    assert (master.tolerations, worker.tolerations) == ((), (tolerated,))
    assert worker.amounts == {"cpu": 500, "memory": 7, "pods": 1, "example.com/fpga": 3}
    gpu, nic = DeviceKind.GPU, DeviceKind.RDMA
    assert worker.devices == ((gpu, 0), (gpu, 2), (nic, 1))


@given(
    st.from_regex(LABEL, fullmatch=True).filter(lambda name: len(name) <= 63),
    st.uuids(),
    st.integers(1, 9999),
)
def test_object_names_are_short_valid_and_of_their_own(
    name: str, uid: object, attempt: int
) -> None:
    made = object_name(name, str(uid), attempt)

    assert LABEL.fullmatch(made)
    assert len(made) <= MAX_OBJECT_NAME
    assert made == object_name(name, str(uid), attempt)
    assert made != object_name(name, str(uid), attempt + 1)


@pytest.mark.parametrize("replica", ["master-0", "worker-9999"])
def test_pods_and_services_of_the_longest_object_still_have_valid_names(replica: str) -> None:
    assert len(f"{object_name('x' * 63, 'u', 99)}-{replica}") <= 63
