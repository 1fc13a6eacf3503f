"""How a plan is cut into transactions: by gangs and by pods, in its own order."""

from gateway.core.admission import Admit
from gateway.core.admission.types import PodPlacement
from gateway.service.committing import BATCH, MOST_PODS, batches


def an_admit(job_id: int, pods: int) -> Admit:
    """Give an admission of so many pods."""
    placements = tuple(
        PodPlacement(pod_set="Worker", index=index, node_id=1, gpu_mask=0, nic_mask=0)
        for index in range(pods)
    )
    return Admit(
        job_id=job_id, version=1, queue="q", class_index=1, placements=placements, charges=()
    )


def sizes(*pods: int) -> list[list[int]]:
    """Give which gangs, by their pods, are written together."""
    found = [*batches(an_admit(job_id, size) for job_id, size in enumerate(pods))]
    together = [admit.job_id for batch in found for admit in batch]
    assert together == list(range(len(pods))), "nobody is left out or passed"
    return [[len(admit.placements) for admit in batch] for batch in found]


def test_small_gangs_are_written_together_up_to_their_number() -> None:
    assert sizes() == []
    assert sizes(*[1] * (BATCH + 1)) == [[1] * BATCH, [1]]


def test_large_gangs_share_a_transaction_only_up_to_their_pods() -> None:
    half = MOST_PODS // 2
    assert sizes(half, half, 1, MOST_PODS) == [[half, half], [1], [MOST_PODS]]


def test_a_gang_with_more_pods_than_that_is_written_alone_and_whole() -> None:
    assert sizes(1, MOST_PODS + 1, 1) == [[1], [MOST_PODS + 1], [1]]
