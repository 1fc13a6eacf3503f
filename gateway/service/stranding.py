"""Tells how far the free GPUs would go, from the fleet as this process knows it now."""

from gateway.core.placing.stranded import stranding
from gateway.schemas.views import FragmentationView, RoomForSize
from gateway.service.context import Gateway
from gateway.service.mirroring import refresh


def fragmentation(gateway: Gateway) -> FragmentationView:
    """Give room for pods by size, what is reserved and what others use taken off."""
    with gateway.mirror.lock:
        refresh(gateway)
        found = stranding(gateway.mirror.mirror.state.scene.room)
    return FragmentationView(items=tuple(RoomForSize(**each._asdict()) for each in found))
