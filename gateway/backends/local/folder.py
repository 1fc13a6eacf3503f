"""The files of one attempt, and where attempts lie in the state folder.

    heartbeat                          touched by a living gateway
    attempts/NAMESPACE/NAME/           one object
    supervisors/UID.json               who runs it; outlives a deletion behind our back
    kept/NAMESPACE/NAME/UID/           a deleted object with its logs

Inside an attempt: launch.json (written once), started and stopped (marks of the gateway),
supervisor.json and status.json (the supervisor's), plans/, logs/. Paths and files only: it decides
nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from gateway.backends.durable import read_json, write_json
from gateway.backends.local.liveness import Running
from gateway.backends.local.records import GangStatus, LaunchRecord
from gateway.errors import ClusterRejected

UNFIT_NAMES = frozenset({"", ".", ".."})
Value = TypeVar("Value")


class AttemptFolder:
    """One attempt's files; the folder may be gone at any moment."""

    def __init__(self, path: Path) -> None:
        """Stand for a folder, existing or not."""
        self.path = path
        self.lock = path / "supervisor.lock"
        self.started = path / "started"
        self.stopped = path / "stopped"
        self.notes = path / "supervisor.log"

    def launch(self) -> LaunchRecord | None:
        """Read who it is; None when it is missing or unreadable."""
        return _read(self.path / "launch.json", LaunchRecord.from_json)

    def uid(self) -> str | None:
        """Read the uid of whatever lies here; empty when that cannot be read."""
        if not self.path.is_dir():
            return None
        document = read_json(self.path / "launch.json") or {}
        return str(document.get("uid", ""))

    def status(self) -> GangStatus | None:
        """Read the supervisor's last word."""
        return _read(self.path / "status.json", GangStatus.from_json)

    def write_status(self, status: GangStatus) -> None:
        """Store the supervisor's word."""
        write_json(self.path / "status.json", status.to_json())

    def supervisor(self) -> Running | None:
        """Read who supervises it; None until one has begun."""
        return _read(self.path / "supervisor.json", _running)

    def plan(self, rank: int, generation: int) -> dict[str, Any] | None:
        """Read the opened plan of one replica; None while its gate is closed."""
        return read_json(self._plan(rank, generation))

    def write_plan(self, rank: int, generation: int, environment: dict[str, str]) -> None:
        """Open one replica's gate."""
        write_json(self._plan(rank, generation), environment)

    def log(self, rank: int) -> Path:
        """Give the log file of a rank; all its generations write into it."""
        return self.path / "logs" / f"{rank}.log"

    def mark(self, mark: Path) -> bool:
        """Set a mark durably; True when this call set it, False when it stood or all is gone."""
        if mark.exists():
            return False
        try:
            write_json(mark, {})
        # The folder was moved or deleted meanwhile, which ends the gang as well.
        except FileNotFoundError:
            return False
        return True

    def _plan(self, rank: int, generation: int) -> Path:
        return self.path / "plans" / f"{rank}-{generation}.json"


class StateFolder:
    """Where attempts lie."""

    def __init__(self, path: Path) -> None:
        """Create what is missing."""
        # The supervisor works in another folder, so a relative path would mean another file there.
        self.path = path.absolute()
        self.heartbeat = self.path / "heartbeat"
        self.incoming = self.path / "incoming"
        self._supervisors = self.path / "supervisors"
        for folder in (self.path, self.incoming, self._supervisors, self.path / "attempts"):
            # Commands and environments lie here, and environments may hold secrets.
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def attempt(self, namespace: str, name: str) -> AttemptFolder:
        """Give the place of an object."""
        return AttemptFolder(self.path / "attempts" / _part(namespace) / _part(name))

    def kept(self, namespace: str, name: str, uid: str) -> AttemptFolder:
        """Give the place of a deleted object."""
        return AttemptFolder(self.path / "kept" / _part(namespace) / _part(name) / _part(uid))

    def kept_of(self, namespace: str, name: str) -> Iterator[AttemptFolder]:
        """Give the deleted objects of a name, newest first."""
        folder = self.path / "kept" / _part(namespace) / _part(name)
        found = sorted(folder.glob("*"), key=lambda path: path.stat().st_mtime, reverse=True)
        return (AttemptFolder(path) for path in found)

    def all_kept(self) -> list[Path]:
        """Give every deleted object's folder, oldest first."""
        # A folder's mtime is that of its last new entry, here the mark of its end; moves keep it.
        return sorted((self.path / "kept").glob("*/*/*"), key=lambda path: path.stat().st_mtime)

    def supervisor(self, uid: str) -> Running | None:
        """Read who runs the object of a uid, even when its folder is gone."""
        return _read(self.supervisor_file(uid), _running)

    def supervisor_file(self, uid: str) -> Path:
        """Give the file that says who runs the object of a uid."""
        return self._supervisors / f"{_part(uid)}.json"


def _part(name: str) -> str:
    """Give the name as part of a path; raises ClusterRejected when it would leave its folder."""
    if "/" in name or "\0" in name or name in UNFIT_NAMES:
        raise ClusterRejected(
            f"{name!r} cannot be a file name",
            value=name,
            hint="use a Kubernetes name: lower case letters, digits and dashes",
        )
    return name


def _running(document: Mapping[str, Any]) -> Running:
    return Running(**document)


def _read(path: Path, parse: Callable[[Mapping[str, Any]], Value]) -> Value | None:
    """Read a file of ours; None when it is missing, or is not what this release writes."""
    document = read_json(path)
    if document is None:
        return None
    try:
        return parse(document)
    except (KeyError, TypeError, ValueError):
        return None
