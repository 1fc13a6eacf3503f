"""Known machine types over REST and SDK."""

import pytest

from gateway.errors import NotFound
from tests.acceptance.conftest import Served


def test_known_machine_types_are_listed_and_shown(shared: Served) -> None:
    listed = shared.sdk().devices.types()
    shown = shared.sdk().devices.type("dgx-h100")

    assert len(listed) >= 15
    assert (shown.gpus, shown.nics, shown.pairs) == (8, 8, 8)
    assert shown.gpu_links[0][1] == "NV18"
    assert [row[place] for place, row in enumerate(shown.nic_distances)] == ["PXB"] * 8


def test_an_unknown_type_is_not_found_and_the_known_ones_are_named(shared: Served) -> None:
    with pytest.raises(NotFound, match="machine type 'dgx-900' does not exist") as caught:
        shared.sdk().devices.type("dgx-900")

    assert "dgx-h100" in caught.value.allowed
    assert shared.http().get("/device-types?limit=2").status_code == 422
