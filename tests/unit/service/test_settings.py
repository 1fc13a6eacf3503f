"""Settings come from the environment, say what is wrong, and fill in what follows."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from gateway.core.vocabulary import BackendName
from gateway.settings import Settings


def test_settings_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINING_GATEWAY_BACKEND", "simulated")
    monkeypatch.setenv("TRAINING_GATEWAY_NAMESPACES", "team-a, team-b,")
    monkeypatch.setenv("TRAINING_GATEWAY_LISTEN_PORT", "0")

    settings = Settings()

    assert settings.backend is BackendName.SIMULATED
    assert settings.namespaces == ("team-a", "team-b")
    assert settings.listen_port == 0


def test_the_database_is_a_file_in_the_state_folder_unless_named(tmp_path: Path) -> None:
    assert Settings(state_dir=tmp_path).url == f"sqlite:///{tmp_path}/gateway.db"
    assert Settings(database_url="postgresql://db/x").url == "postgresql://db/x"


@pytest.mark.parametrize(
    "wrong",
    [
        {"listen_port": 70_000},
        {"cluster_call_seconds": 6},
        {"lease_seconds": 1},
        {"lease_seconds": 9},
        {"backend": "x"},
    ],
)
def test_a_setting_out_of_range_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Settings(**wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_the_local_back_end_is_off_by_default() -> None:
    assert not Settings().allow_local_backend
    assert Settings().listen_host == "127.0.0.1"
