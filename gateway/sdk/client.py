"""The client: one object for everything a user asks of a gateway."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, Unpack

import httpx2

from gateway.errors import NotSupportedYet
from gateway.schemas.views import EventView, Health, PlanView, WhoAmI
from gateway.sdk.credentials import find_credentials
from gateway.sdk.definitions import (
    Cohorts,
    DefinitionDocument,
    Flavors,
    PriorityClasses,
    Queues,
)
from gateway.sdk.fleet import Devices, Nodes
from gateway.sdk.handle import JobHandle
from gateway.sdk.jobs import BatchOutcome, Jobs
from gateway.sdk.live_events import follow_events, past_events
from gateway.sdk.local import LocalGateway
from gateway.sdk.submission import Overrides, Source
from gateway.sdk.transport import Call, Wire, read_answer


class Client:
    """Talks to one gateway; may be shared by threads, and closes as a context manager.

    Without arguments it takes TRAINING_GATEWAY_URL and TRAINING_GATEWAY_TOKEN or _TOKEN_FILE, or
    finds the `gateway dev` of this machine.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        token_file: str | Path | None = None,
        timeout: float = 30.0,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        """Look up credentials; nothing is sent yet.

        Args:
            url: where the gateway listens.
            token: the bearer token itself.
            token_file: a file that holds the token, read for every request.
            timeout: seconds for one request.
            transport: what carries requests; tests give one of their own.
        """
        credentials = find_credentials(url, token, token_file)
        self._wire = Wire(credentials, timeout_seconds=timeout, transport=transport)
        self._local: LocalGateway | None = None
        self.jobs = Jobs(self._wire)
        self.queues = Queues(self._wire)
        self.cohorts = Cohorts(self._wire)
        self.flavors = Flavors(self._wire)
        self.priority_classes = PriorityClasses(self._wire)
        self.definitions = DefinitionDocument(self._wire)
        self.nodes = Nodes(self._wire)
        self.devices = Devices(self._wire)

    @classmethod
    def local(cls, *, start_timeout: float = 60.0) -> Self:
        """Start a gateway of its own on this machine, for notebooks and tests.

        It runs `gateway dev --ephemeral` as a child, which needs the server extra; it ends with
        the client or with this program, and forgets everything.
        """
        local = LocalGateway(start_timeout_seconds=start_timeout)
        client = cls(local.url, local.token)
        client._local = local
        return client

    @property
    def url(self) -> str:
        """Where the gateway listens."""
        return self._wire.credentials.url

    def submit(
        self, source: Source, *, idempotency_key: str | None = None, **overrides: Unpack[Overrides]
    ) -> JobHandle:
        """Submit one job; see `Jobs.submit`."""
        return self.jobs.submit(source, idempotency_key=idempotency_key, **overrides)

    def plan(self, source: Source, **overrides: Unpack[Overrides]) -> PlanView:
        """Check a submission and store nothing; see `Jobs.plan`."""
        return self.jobs.plan(source, **overrides)

    def batch(
        self, sources: Sequence[Source], **overrides: Unpack[Overrides]
    ) -> list[BatchOutcome]:
        """Submit many jobs; see `Jobs.batch`."""
        return self.jobs.batch(sources, **overrides)

    def events(self, *, follow: bool = False, after_id: int = 0) -> Iterator[EventView]:
        """Give what happened in your namespaces; with `follow`, what happens from now on too."""
        return follow_events(self._wire, after_id) if follow else past_events(self._wire)

    def whoami(self) -> WhoAmI:
        """Give who the gateway takes this client for."""
        found = self._wire.send(Call(method="GET", path="/whoami"))
        return read_answer(WhoAmI, found.content)

    def health(self) -> Health:
        """Give whether the gateway can work; raises Unavailable or GatewayUnreachable."""
        found = self._wire.send(Call(method="GET", path="/readyz"))
        return read_answer(Health, found.content)

    @property
    def usage(self) -> object:
        """Usage reports; not built yet."""
        raise NotSupportedYet(
            "usage reports are not supported yet",
            pointer="/usage",
            hint="the changelog says what each release brings",
        )

    def close(self) -> None:
        """Close connections, and stop the gateway that `local` started."""
        # The child comes last: a server that stops first waits for connections still open.
        self._wire.close()
        if self._local is not None:
            self._local.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client {self.url}>"


def submit(
    source: Source,
    *,
    client: Client | None = None,
    idempotency_key: str | None = None,
    **overrides: Unpack[Overrides],
) -> JobHandle:
    """Submit one job to the gateway that the environment names, and give a handle on it."""
    # Left open on purpose, since the handle goes on asking through it; it closes with the handle.
    chosen = client or Client()
    return chosen.submit(source, idempotency_key=idempotency_key, **overrides)
