"""Changes that would let a gang start, told: each in numbers and in words, part by part."""

from collections.abc import Iterator
from dataclasses import replace

from gateway.core.admission.lifts import LOOSER, Change, Lack, Question
from gateway.core.admission.slice_causes import slices_in_words, slices_of
from gateway.core.admission.trial import Scene
from gateway.core.admission.unblock import Lift, Lifts, Unblock
from gateway.core.jobs.request import RequestClass
from gateway.core.queues.definitions import Queue
from gateway.core.queues.limits import Shortage, raises_needed
from gateway.core.resources import GPU, RDMA
from gateway.core.resources.words import in_words, listed
from gateway.core.vocabulary import LiftKind

_DEVICE_WORDS = {GPU: "GPU", RDMA: "NIC"}
Part = tuple[str, Lifts]
"""Words with what they stand for."""


def unblocking(scene: Scene, queue: Queue, request: RequestClass) -> tuple[Unblock, ...]:
    """Give sets of which each would admit the gang if nobody comes before it.

    Empty when nothing that was tried would.
    """
    question = Question(scene, queue, request)
    return tuple(_told(question, change) for change in question.smallest())


def _told(question: Question, change: Change) -> Unblock:
    parts = [
        *_quota(question, change),
        *_room(question, change),
        *_rule(question, change),
        *_level(question, change),
        *_slices(question, change),
        *_health(question, change),
    ]
    words = "; and ".join(words for words, _ in parts)
    return Unblock(words, tuple(lift for _, lifts in parts for lift in lifts))


def _quota(question: Question, change: Change) -> Iterator[Part]:
    fit = question.answer(change)
    if not change.quota or fit is None:
        return
    tree = question.scene.fresh_tree()
    raises = raises_needed(tree, question.queue.name, fit.charges)
    lifts = tuple(
        Lift(
            kind=LiftKind.BORROWING_LIMIT if lack.is_borrowing_limit else LiftKind.QUOTA,
            target=lack.node,
            flavor=lack.pair[0],
            resource=lack.pair[1],
            amount=lack.missing,
        )
        for lack in raises
    )
    yield "raise " + listed(map(_raise_words, raises)), lifts


def _raise_words(lack: Shortage) -> str:
    amount = in_words(lack.pair[1], lack.missing)
    return f"the {lack.limit} of {lack.node} by {amount} of flavor {lack.pair[0]}"


def _room(question: Question, change: Change) -> Iterator[Part]:
    """Say what the gang's own places lack, node by node."""
    names = question.scene.fleet.names
    parts = [
        (words, lift)
        for row, lack in question.lacks(change).items()
        for words, lift in [_lack_told(names[row], lack)]
    ]
    if parts:
        yield listed(words for words, _ in parts), tuple(lift for _, each in parts for lift in each)


def _lack_told(node: str, lack: Lack) -> Part:
    words: list[str] = []
    lifts: list[Lift] = []
    for resource, amount in lack.amounts:
        words.append(in_words(resource, amount))
        lifts.append(Lift(kind=LiftKind.ROOM, target=node, resource=resource, amount=amount))
    for resource, mask in ((GPU, lack.gpus), (RDMA, lack.nics)):
        if mask:
            ordinals = tuple(bit for bit in range(mask.bit_length()) if mask >> bit & 1)
            words.append(device_words(resource, ordinals))
            lifts.append(_devices(node, resource, ordinals))
    return f"{listed(words)} to come free on {node}", tuple(lifts)


def _devices(node: str, resource: str, ordinals: tuple[int, ...]) -> Lift:
    return Lift(
        kind=LiftKind.ROOM,
        target=node,
        resource=resource,
        amount=len(ordinals),
        ordinals=ordinals,
    )


def device_words(resource: str, ordinals: tuple[int, ...]) -> str:
    """Give devices of a node by number: "GPU 3", "GPUs 0-3", "NICs 0, 2-4"."""
    # As Linux lists CPUs: all eight GPUs of a node are one word.
    runs: list[list[int]] = []
    for ordinal in ordinals:
        if runs and ordinal == runs[-1][-1] + 1:
            runs[-1].append(ordinal)
        else:
            runs.append([ordinal])
    told = ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
    return f"{_DEVICE_WORDS[resource]}{'s' if len(ordinals) > 1 else ''} {told}"


def _rule(question: Question, change: Change) -> Iterator[Part]:
    if change.rule is None:
        return
    # What quota or room is missing was worked out for this very rule.
    rules = (change.rule,) if change.quota or change.emptied else LOOSER[1:]
    enough = [rule for rule in rules if question.answer(replace(change, rule=rule))]
    words = "accept pair rule " + " or ".join(f"'{rule}'" for rule in enough)
    yield words, (Lift(kind=LiftKind.PAIR, word=enough[0]),)


def _level(question: Question, change: Change) -> Iterator[Part]:
    if not change.is_spread:
        return
    labels = sorted({each.level for each in question.request.pod_sets if each.level})
    lifts = tuple(Lift(kind=LiftKind.TOPOLOGY, target=label) for label in labels)
    yield f"accept pods in more than one domain of {listed(labels)} (mode 'preferred')", lifts


def _slices(question: Question, change: Change) -> Iterator[Part]:
    if not change.is_whole:
        return
    slices = slices_of(question.request)
    lifts = tuple(Lift(kind=LiftKind.SLICES, target=label, amount=size) for label, size in slices)
    yield f"accept pods without {slices_in_words(slices)}", lifts


def _health(question: Question, change: Change) -> Iterator[Part]:
    if not change.healed:
        return
    names = [question.scene.fleet.names[row] for row in sorted(change.healed)]
    lifts = tuple(Lift(kind=LiftKind.HEALTH, target=name) for name in names)
    yield f"{listed(names)} to be back in service", lifts
