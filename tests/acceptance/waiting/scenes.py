"""Ten scenes, each a few commands that end with a job that waits for another reason."""

from dataclasses import dataclass
from typing import Any

from gateway.core.vocabulary import Reason

FILES: dict[str, dict[str, Any]] = {
    "four.yaml": {"resources": {"cpu": 4, "memory": "16Gi", "gpu": 4}},
    "eight.yaml": {"resources": {"cpu": 4, "memory": "16Gi", "gpu": 8}},
    "two-nodes.yaml": {"resources": {"cpu": 4, "memory": "16Gi", "gpu": 8}, "workers": 1},
    "nics.yaml": {"resources": {"cpu": 4, "memory": "16Gi", "rdma": 4}},
    "pairs.yaml": {
        "resources": {"cpu": 4, "memory": "16Gi", "gpu": 2, "rdma": 2},
        "devices": {"pair": "switch"},
    },
}
"""Jobs in the short form, without their names."""

RUNNING, GONE, CYCLE = "running", "gone", "cycle"
"""Words of steps that wait: until a job runs, until it is gone, for one admission cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """How a job comes to wait, and what is right to say about it."""

    title: str
    words: str
    reason: Reason
    steps: tuple[str, ...]
    """Commands: `$` is a user's, `#` an admin's; or a word for waiting, and a job."""
    fleet: str = "2xdgx-h100"
    says: tuple[str, ...]
    """Parts of a right answer."""
    job: str = "train"


SCENES = (
    Scene(
        title="It is held",
        words="Nobody looks at a held job until it is released.",
        reason=Reason.HELD,
        steps=("$ gateway submit eight.yaml --name train --hold",),
        says=("it is held", "gateway release"),
    ),
    Scene(
        title="Its time has not come",
        words="A job may name a time before which it is not considered.",
        reason=Reason.NOT_BEFORE,
        steps=("$ gateway submit eight.yaml --name train --not-before 2099-01-31T18:00:00Z",),
        says=("not to start before 2099-01-31T18:00:00Z", "the time to be 2099-01-31T18:00:00Z"),
    ),
    Scene(
        title="Its queue is paused",
        words="A paused queue takes jobs and starts none.",
        reason=Reason.QUEUE_PAUSED,
        steps=("# gateway queue pause default", "$ gateway submit eight.yaml --name train"),
        says=("queue default is paused", "queue default to be resumed"),
    ),
    Scene(
        title="Its queue is over its quota",
        words="The queue has 8 GPUs and no cohort to borrow from; 4 are in use.",
        reason=Reason.OVER_QUOTA,
        steps=(
            "# gateway queue create research --quota default/gpu=8",
            "$ gateway submit four.yaml --name first --queue research",
            "running first",
            "$ gateway submit eight.yaml --name train --queue research",
            "cycle",
        ),
        says=(
            "asks for 8 GPUs of flavor default, 4 available: the quota of research binds",
            "research: gpu of default: 4 used of 8 nominal, 4 available, 8 asked",
            "raise the quota of research by 4 GPUs of flavor default",
        ),
    ),
    Scene(
        title="Its queue may not borrow that much",
        words="The cohort has enough to lend, but the queue may borrow 4 GPUs at most.",
        reason=Reason.OVER_BORROWING_LIMIT,
        steps=(
            "# gateway cohort create lab",
            "# gateway queue create research --cohort lab --quota default/gpu=4,borrow=4",
            "# gateway queue create product --cohort lab --quota default/gpu=12",
            "$ gateway submit four.yaml --name first --queue research",
            "running first",
            "$ gateway submit eight.yaml --name train --queue research",
            "cycle",
        ),
        says=(
            "the borrowing limit of research binds",
            "lab: gpu of default: 4 used of 0 nominal, 12 available, 8 asked",
            "raise the borrowing limit of research by 4 GPUs of flavor default",
        ),
    ),
    Scene(
        title="Its user is at a cap",
        words="One user's jobs may hold 8 GPUs of the queue at the same time.",
        reason=Reason.OVER_CAP,
        steps=(
            "# gateway queue set default --cap user_gpus=8",
            "$ gateway submit eight.yaml --name first",
            "running first",
            "$ gateway submit four.yaml --name train",
            "cycle",
        ),
        says=(
            "anna holds 8 GPUs in queue default, where one user may hold 8; this job asks for 4",
            "cap user_gpus of queue default to be 12 at least",
        ),
    ),
    Scene(
        title="Another queue has used less",
        words=(
            "One node is free and two queues want it. `research` borrows already, so `product` "
            "comes first."
        ),
        reason=Reason.BEHIND_FAIR_SHARE,
        steps=(
            "# gateway cohort create lab --quota default/gpu=16",
            "# gateway queue create research --cohort lab",
            "# gateway queue create product --cohort lab",
            "$ gateway submit eight.yaml --name first --queue research",
            "running first",
            "$ gateway submit eight.yaml --name train --queue research",
            "$ gateway submit eight.yaml --name theirs --queue product",
            "cycle",
        ),
        says=("it fitted until 1 job of product came first by fair share",),
    ),
    Scene(
        title="Others of its queue come first",
        words="Both want the whole fleet; the one with the higher priority gets it.",
        reason=Reason.BEHIND_PRIORITY,
        steps=(
            "$ gateway submit two-nodes.yaml --name train",
            "$ gateway submit two-nodes.yaml --name urgent --priority 5",
            "cycle",
        ),
        says=("it fitted until 1 job of its queue came first",),
    ),
    Scene(
        title="Enough is free, but in pieces",
        words="Four GPUs are free on each node, and the job wants eight on one.",
        reason=Reason.FRAGMENTED_DEVICES,
        steps=(
            "$ gateway submit four.yaml --name first",
            "running first",
            "$ gateway submit four.yaml --name second",
            "running second",
            "$ gateway submit four.yaml --name third",
            "running third",
            "$ gateway cancel first",
            "gone first",
            "$ gateway submit eight.yaml --name train",
            "cycle",
        ),
        says=("8 GPUs free in all, at most 4 on one node", "GPUs 4-7 to come free on dgx-h100-0"),
    ),
    Scene(
        title="What is free is too far apart",
        words=(
            "GPUs 0 to 3 are free and NICs 4 to 7, none of them under one PCIe switch. The job "
            "wants each GPU beside its NIC."
        ),
        reason=Reason.NO_ALIGNED_DEVICES,
        fleet="1xdgx-h100",
        steps=(
            "$ gateway submit four.yaml --name first",
            "running first",
            "$ gateway submit four.yaml --name second",
            "running second",
            "$ gateway submit nics.yaml --name third",
            "running third",
            "$ gateway cancel first",
            "gone first",
            "$ gateway submit pairs.yaml --name train",
            "cycle",
        ),
        says=(
            "no free set of 2 GPUs with 2 NICs near enough for pair rule 'switch'",
            "accept pair rule",
        ),
    ),
)
