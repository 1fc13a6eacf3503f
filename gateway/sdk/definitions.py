"""What admins define: read by all, changed by admins, guarded by version."""

from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from pydantic import BaseModel

from gateway.schemas.definitions import (
    CohortPage,
    CohortSpec,
    CohortView,
    DefinitionSet,
    FlavorPage,
    FlavorSpec,
    FlavorView,
    PriorityClassPage,
    PriorityClassSpec,
    PriorityClassView,
    QueuePage,
    QueueSpec,
    QueueView,
)
from gateway.schemas.order import OrderEntry, OrderPage, SharesView
from gateway.sdk.pages import pages
from gateway.sdk.transport import Call, Wire, read_answer

Spec = TypeVar("Spec", QueueSpec, CohortSpec, FlavorSpec, PriorityClassSpec)
Shown = TypeVar("Shown", bound=BaseModel)


class Definitions(Generic[Spec, Shown]):
    """One kind of definition."""

    def __init__(self, wire: Wire, noun: str, shown: type[Shown]) -> None:
        """Use this connection for this plural noun."""
        self._wire = wire
        self._noun = noun
        self._shown = shown

    def _all(self) -> bytes:
        return self._wire.send(Call(method="GET", path=f"/{self._noun}")).content

    def get(self, name: str) -> Shown:
        """Give one; raises NotFound."""
        return self._read(Call(method="GET", path=self._path(name)))

    def create(self, spec: Spec) -> Shown:
        """Create one; raises Conflict when the name is taken."""
        # Not repeatable: after a lost answer the second POST would be a conflict with the first.
        return self._read(Call(method="POST", path=f"/{self._noun}", body=_body(spec)))

    def update(self, spec: Spec, if_version: int | None = None) -> Shown:
        """Replace one; with `if_version`, only if it still has that version.

        Raises:
            StaleVersion: somebody changed it since; read it again.
        """
        path, headers = self._path(spec.name), _condition(if_version)
        return self._read(Call(method="PUT", path=path, body=_body(spec), headers=headers))

    def delete(self, name: str, if_version: int | None = None) -> None:
        """Delete one that is not in use; raises Conflict otherwise."""
        call = Call(method="DELETE", path=self._path(name), headers=_condition(if_version))
        self._wire.send(call)

    def _path(self, name: str) -> str:
        # No slash and no colon may get through: a colon begins a verb (`/queues/NAME:pause`).
        return f"/{self._noun}/{quote(name, safe='')}"

    def _read(self, call: Call) -> Shown:
        return read_answer(self._shown, self._wire.send(call).content)


class Queues(Definitions[QueueSpec, QueueView]):
    """Queues."""

    def __init__(self, wire: Wire) -> None:
        """Use this connection."""
        super().__init__(wire, "queues", QueueView)

    def list(self) -> Sequence[QueueView]:
        """Give all queues by name."""
        return read_answer(QueuePage, self._all()).items

    def pause(self, name: str) -> QueueView:
        """Admit nothing more from a queue; twice is fine."""
        return self._verb(name, "pause")

    def resume(self, name: str) -> QueueView:
        """Admit from a queue again; twice is fine."""
        return self._verb(name, "resume")

    def order(self, name: str, *, limit: int = 100) -> OrderPage:
        """Give those who come next in a queue with every term of their order."""
        call = Call(method="GET", path=f"{self._path(name)}/order", params={"limit": limit})
        return read_answer(OrderPage, self._wire.send(call).content)

    def ranked(self, name: str) -> Iterator[OrderEntry]:
        """Give everybody who waits in a queue, first those who come next."""
        for page in pages(self._wire, f"{self._path(name)}/order", OrderPage):
            yield from page.items

    def shares(self, name: str | None = None) -> SharesView:
        """Give who has how much of what: of the tree that a queue is in, or of all."""
        path = "/shares" if name is None else f"{self._path(name)}/shares"
        return read_answer(SharesView, self._wire.send(Call(method="GET", path=path)).content)

    def _verb(self, name: str, verb: str) -> QueueView:
        path = f"{self._path(name)}:{verb}"
        return self._read(Call(method="POST", path=path, is_repeatable=True))


class Cohorts(Definitions[CohortSpec, CohortView]):
    """Cohorts."""

    def __init__(self, wire: Wire) -> None:
        """Use this connection."""
        super().__init__(wire, "cohorts", CohortView)

    def list(self) -> Sequence[CohortView]:
        """Give all cohorts by name."""
        return read_answer(CohortPage, self._all()).items


class Flavors(Definitions[FlavorSpec, FlavorView]):
    """Flavors."""

    def __init__(self, wire: Wire) -> None:
        """Use this connection."""
        super().__init__(wire, "flavors", FlavorView)

    def list(self) -> Sequence[FlavorView]:
        """Give all flavors by name."""
        return read_answer(FlavorPage, self._all()).items


class PriorityClasses(Definitions[PriorityClassSpec, PriorityClassView]):
    """Priority classes."""

    def __init__(self, wire: Wire) -> None:
        """Use this connection."""
        super().__init__(wire, "priority-classes", PriorityClassView)

    def list(self) -> Sequence[PriorityClassView]:
        """Give all priority classes by name."""
        return read_answer(PriorityClassPage, self._all()).items


class DefinitionDocument:
    """Everything by kind, as one document."""

    def __init__(self, wire: Wire) -> None:
        """Use this connection."""
        self._wire = wire

    def export(self) -> DefinitionSet:
        """Give all definitions; applying them changes nothing."""
        found = self._wire.send(Call(method="GET", path="/definitions"))
        return read_answer(DefinitionSet, found.content)

    def apply(self, document: DefinitionSet, *, dry_run: bool = False) -> Sequence[str]:
        """Create what is new and replace what differs; gives one line for each change."""
        params = {"dry_run": "true"} if dry_run else {}
        call = Call(
            method="POST",
            path="/definitions",
            params=params,
            body=_body(document),
            # Applying the same document twice changes nothing the second time.
            is_repeatable=True,
        )
        changes: list[str] = self._wire.send(call).json()["changes"]
        return changes


def _body(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json")


def _condition(if_version: int | None) -> dict[str, str]:
    return {} if if_version is None else {"If-Match": f'"{if_version}"'}
