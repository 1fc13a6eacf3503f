"""Manifests written for the tests, with what each must be read as; shared by every surface.

`good/` holds what is accepted, `bad/` what is refused; `expected.yaml` beside them is the table.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from gateway.manifests import ReadOptions

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodManifest:
    """A file that is accepted, and its jobs as rows of the table."""

    path: Path
    jobs: tuple[dict[str, Any], ...]

    @property
    def name(self) -> str:
        """File name, for test ids."""
        return self.path.name

    @property
    def is_unsafe(self) -> bool:
        """Refused unless unsafe templates are allowed."""
        return any("unsafe" in job for job in self.jobs)

    @property
    def is_kueue(self) -> bool:
        """Refused unless the Kueue label is mapped."""
        return any("kueue" in job for job in self.jobs)

    @property
    def options(self) -> ReadOptions:
        """The options under which it is accepted."""
        return ReadOptions(
            allow_unsafe_templates=self.is_unsafe,
            kueue_label="map" if self.is_kueue else "refuse",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BadManifest:
    """A file that is refused: by which class of error, where, with which part of the hint."""

    path: Path
    error: str
    pointer: str
    hint: str

    @property
    def name(self) -> str:
        """File name, for test ids."""
        return self.path.name


@cache
def good_manifests() -> tuple[GoodManifest, ...]:
    """Give every accepted file."""
    return tuple(
        GoodManifest(path=FOLDER / "good" / name, jobs=tuple(jobs))
        for name, jobs in _table("good").items()
    )


@cache
def bad_manifests() -> tuple[BadManifest, ...]:
    """Give every refused file."""
    return tuple(
        BadManifest(path=FOLDER / "bad" / name, **row) for name, row in _table("bad").items()
    )


def _table(folder: str) -> dict[str, Any]:
    table: dict[str, Any] = yaml.safe_load((FOLDER / folder / "expected.yaml").read_text())
    return table
