"""Trains a small network on handwritten digits, its gradients summed over all ranks.

    python -m gateway.examples.digits.train --epochs 20

Reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as the training-operator sets them, and tells
which devices the gateway gave it. The result is the same for any number of ranks. Exit code 1 when
another rank goes away or the network learned too little.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence

import numpy as np

from gateway.examples.digits import network
from gateway.examples.digits.allreduce import PeerLost, Place
from gateway.examples.digits.data import Digits, Floats, batches, load_digits
from gateway.examples.digits.meeting import WAYS, Gathering, gather, read_place

GOOD_ENOUGH = 0.9


def main(arguments: Sequence[str] | None = None) -> int:
    """Train and give the exit code."""
    options = _options(arguments)
    place = read_place()
    say(devices_line(place))
    try:
        gathering = gather(place, options.way)
        say(f"{place.world} ranks met through {gathering.name}")
        accuracy = train(gathering, place, options)
        gathering.close()
    # RuntimeError is what torch.distributed raises when a rank went away.
    except (PeerLost, RuntimeError) as error:
        say(f"rank {place.rank} gives up: {error}")
        return 1
    say(f"done: accuracy {accuracy:.3f} on held-out digits after {options.epochs} epochs")
    return 0 if accuracy >= options.accuracy else 1


def train(gathering: Gathering, place: Place, options: argparse.Namespace) -> float:
    """Run all epochs and give the accuracy on the digits held out."""
    digits, held_out = load_digits()
    parameters = network.start()
    speed = np.zeros_like(parameters)
    accuracy = 0.0
    for epoch in range(1, options.epochs + 1):
        loss = 0.0
        for chosen in batches(len(digits), options.batch, epoch):
            # By the whole batch, not by this rank's part: the step is the same for any world size.
            batch_loss, gradient = summed(gathering, parameters, digits.pick(chosen), place)
            speed = options.momentum * speed - options.rate * gradient / len(chosen)
            parameters = parameters + speed
            loss += batch_loss
        accuracy = network.correct(parameters, held_out) / len(held_out)
        width = len(str(options.epochs))
        say(
            f"epoch {epoch:{width}}/{options.epochs}  loss {loss / len(digits):.4f}"
            f"  accuracy {accuracy:.3f}"
        )
        time.sleep(options.pause_seconds)
    return accuracy


def summed(
    gathering: Gathering, parameters: Floats, batch: Digits, place: Place
) -> tuple[float, Floats]:
    """Give the loss and gradient of a whole batch, of which this rank computes its part."""
    # Every world-th digit: parts differ by one at most, and an empty part sums to zero.
    part = batch.pick(np.arange(place.rank, len(batch), place.world))
    loss, gradient = network.loss_and_gradient(parameters, part)
    total = gathering.sum(np.concatenate([[loss], gradient]))
    return float(total[0]), total[1:]


def devices_line(place: Place) -> str:
    """Tell which devices the gateway reserved for this rank."""
    told = {
        name: os.environ.get(f"TRAINING_GATEWAY_{name}") or "none"
        for name in ("NODE", "GPUS", "NICS")
    }
    return (
        f"rank {place.rank} of {place.world} on node {told['NODE']}: "
        f"GPUs {told['GPUS']}; NICs {told['NICS']}"
    )


def say(line: str) -> None:
    """Print a line that is seen at once."""
    print(line, flush=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train on handwritten digits.")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--pause-seconds", type=float, default=0.0, help="after each epoch")
    parser.add_argument("--batch", type=int, default=100, help="digits a step, over all ranks")
    parser.add_argument("--rate", type=float, default=0.2)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument(
        "--accuracy", type=float, default=GOOD_ENOUGH, help="least that counts as a success"
    )
    parser.add_argument("--way", choices=WAYS, default="auto", help="how the ranks meet")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
