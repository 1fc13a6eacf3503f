"""Nodes and devices: who holds what; admins cordon nodes."""

from collections.abc import Iterator
from typing import Literal
from urllib.parse import quote

from gateway.schemas.device_types import DeviceTypeDetail, DeviceTypePage, DeviceTypeView
from gateway.schemas.views import (
    DeviceHistoryPage,
    DeviceHoldView,
    DevicePage,
    DeviceView,
    FragmentationView,
    NodePage,
    NodeView,
)
from gateway.sdk.pages import pages
from gateway.sdk.transport import Call, Wire, read_answer


class Nodes:
    """Nodes of the fleet."""

    def __init__(self, wire: Wire) -> None:
        """Use this connection."""
        self._wire = wire

    def list(self) -> Iterator[NodeView]:
        """Give nodes by name."""
        for page in pages(self._wire, "/nodes", NodePage):
            yield from page.items

    def get(self, name: str) -> NodeView:
        """Give one node; raises NotFound."""
        return self._read(Call(method="GET", path=f"/nodes/{quote(name, safe='')}"))

    def fragmentation(self) -> FragmentationView:
        """Give how many pods of each size the free GPUs have room for."""
        found = self._wire.send(Call(method="GET", path="/fragmentation"))
        return read_answer(FragmentationView, found.content)

    def cordon(self, name: str, reason: str) -> NodeView:
        """Place nothing more on a node."""
        path = f"/nodes/{quote(name, safe='')}:cordon"
        body = {"reason": reason}
        return self._read(Call(method="POST", path=path, body=body, is_repeatable=True))

    def uncordon(self, name: str) -> NodeView:
        """Place jobs on a node again."""
        path = f"/nodes/{quote(name, safe='')}:uncordon"
        return self._read(Call(method="POST", path=path, is_repeatable=True))

    def _read(self, call: Call) -> NodeView:
        return read_answer(NodeView, self._wire.send(call).content)


class Devices:
    """GPUs and NICs, with who holds each."""

    def __init__(self, wire: Wire) -> None:
        """Use this connection."""
        self._wire = wire

    def list(
        self,
        *,
        node: str | None = None,
        kind: Literal["gpu", "rdma"] | None = None,
        free: bool | None = None,
    ) -> Iterator[DeviceView]:
        """Give devices by node, kind and ordinal."""
        # None asks for all; False asks for held ones and is not "left out".
        is_free = None if free is None else str(free).lower()
        wanted = {"node": node, "kind": kind, "free": is_free}
        for page in pages(self._wire, "/devices", DevicePage, wanted):
            yield from page.items

    def get(self, device_id: int) -> DeviceView:
        """Give one device; raises NotFound."""
        found = self._wire.send(Call(method="GET", path=f"/devices/{device_id}"))
        return read_answer(DeviceView, found.content)

    def history(self, device_id: int) -> Iterator[DeviceHoldView]:
        """Give who held one device, the newest first; raises NotFound."""
        for page in pages(self._wire, f"/devices/{device_id}/history", DeviceHistoryPage):
            yield from page.items

    def types(self) -> tuple[DeviceTypeView, ...]:
        """Give all machine types that the gateway knows, the built-in ones first."""
        found = self._wire.send(Call(method="GET", path="/device-types"))
        return read_answer(DeviceTypePage, found.content).items

    def type(self, name: str) -> DeviceTypeDetail:
        """Give one machine type with its wiring; raises NotFound."""
        call = Call(method="GET", path=f"/device-types/{quote(name, safe='')}")
        return read_answer(DeviceTypeDetail, self._wire.send(call).content)
