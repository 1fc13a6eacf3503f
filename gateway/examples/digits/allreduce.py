"""Sums vectors over all ranks through plain sockets: a star whose centre is rank 0.

Rank 0 adds in the order of ranks, so every rank gets the same bits. A rank that goes away is
noticed by all: `PeerLost`.
"""

import socket
import struct
import time
from dataclasses import dataclass
from typing import Final

import numpy as np

from gateway.examples.digits.data import Floats

# Network byte order without padding: magic, rank, number of ranks. What connects by chance, a port
# scanner or a rank of another gang, does not say this.
GREETING: Final = struct.Struct("!8sII")
MAGIC: Final = b"digits01"
MEET_SECONDS: Final = 60.0
REPLY_SECONDS: Final = 60.0
RETRY_SECONDS: Final = 0.05


class PeerLost(ConnectionError):
    """Another rank went away or does not answer, so the training cannot go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """This replica's place in the gang, as the operator's variables say it."""

    rank: int
    world: int
    address: str
    port: int


class SocketSum:
    """A gathering of all ranks; made by `meet`."""

    name = "sockets"

    def __init__(self, place: Place, peers: list[socket.socket]) -> None:
        """Keep the connections: by rank from 1 on rank 0, to rank 0 on every other."""
        self._place = place
        self._peers = peers

    def sum(self, vector: Floats) -> Floats:
        """Give the sum of every rank's vector; raises PeerLost."""
        if self._place.rank:
            _send(self._peers[0], vector, 0)
            return _receive(self._peers[0], len(vector), 0)
        # Addition of floats is not associative: at one place and in a fixed order, so that the
        # parameters of all ranks stay equal to the last bit and need no broadcast.
        total = vector.copy()
        for rank, peer in enumerate(self._peers, start=1):
            total += _receive(peer, len(vector), rank)
        for rank, peer in enumerate(self._peers, start=1):
            _send(peer, total, rank)
        return total

    def close(self) -> None:
        """Let go of the connections."""
        for peer in self._peers:
            peer.close()


def meet(place: Place) -> SocketSum:
    """Wait until every rank is there; raises PeerLost after MEET_SECONDS."""
    deadline = time.monotonic() + MEET_SECONDS
    if place.rank:
        return SocketSum(place, [_join(place, deadline)])
    return SocketSum(place, _gather(place, deadline) if place.world > 1 else [])


def _gather(place: Place, deadline: float) -> list[socket.socket]:
    """Accept one connection from each other rank."""
    found: dict[int, socket.socket] = {}
    # In a pod the address is the Master's service, which is no interface of the pod.
    host = place.address if place.address.startswith("127.") else ""
    with socket.create_server((host, place.port), backlog=place.world) as server:
        while len(found) < place.world - 1:
            server.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                peer, _ = server.accept()
            except TimeoutError:
                missing = sorted(set(range(1, place.world)) - found.keys())
                raise PeerLost(f"ranks {missing} did not come within {MEET_SECONDS:g} s") from None
            rank = _greeted(peer, place.world)
            if rank is None or rank in found:
                peer.close()  # a stranger
            else:
                found[rank] = peer
    return [found[rank] for rank in sorted(found)]


def _greeted(peer: socket.socket, world: int) -> int | None:
    """Read who it is; None for anybody who is not of this gang."""
    peer.settimeout(REPLY_SECONDS)
    # One small message each way per step: Nagle's algorithm would wait 40 ms for the delayed ACK.
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        magic, rank, its_world = GREETING.unpack(_read(peer, GREETING.size))
    except OSError:
        return None
    is_ours = magic == MAGIC and its_world == world and 0 < rank < world
    return rank if is_ours else None


def _join(place: Place, deadline: float) -> socket.socket:
    """Connect to rank 0, which may start later than this rank."""
    while True:
        try:
            peer = socket.create_connection((place.address, place.port), timeout=REPLY_SECONDS)
            break
        # A Master's service has no address until its pod is ready: a failed lookup waits too.
        except OSError:
            if time.monotonic() > deadline:
                raise PeerLost(f"rank 0 did not come within {MEET_SECONDS:g} s") from None
            time.sleep(RETRY_SECONDS)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer.sendall(GREETING.pack(MAGIC, place.rank, place.world))
    return peer


def _send(peer: socket.socket, vector: Floats, rank: int) -> None:
    try:
        # Little-endian whatever the machine, as both ends read it.
        peer.sendall(vector.astype("<f8").tobytes())
    except OSError as error:
        raise PeerLost(f"rank {rank} is gone: {error}") from error


def _receive(peer: socket.socket, count: int, rank: int) -> Floats:
    try:
        return np.frombuffer(_read(peer, count * 8), "<f8").astype(np.float64)
    except OSError as error:
        raise PeerLost(f"rank {rank} is gone: {error}") from error


def _read(peer: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = peer.recv(size - len(parts))
        if not part:
            raise ConnectionResetError("the connection was closed")
        parts += part
    return bytes(parts)
