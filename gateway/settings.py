"""Every setting of the server, read from the environment, a file or flags; one line each.

Names in the environment carry the prefix TRAINING_GATEWAY_. The table in the reference pages is
generated from this class.
"""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from gateway.core.vocabulary import ENVIRONMENT_PREFIX, BackendName


def default_state_dir() -> Path:
    """Give the folder for state when nothing is set."""
    return Path.home() / ".local" / "state" / "training-gateway"


class Settings(BaseSettings):
    """Settings of one gateway server."""

    # Unknown variables of the prefix are left alone: the SDK and the command line have some too.
    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX, extra="ignore", frozen=True, allow_inf_nan=False
    )

    state_dir: Path = Field(default_factory=default_state_dir)
    """Folder for the SQLite file, the context file and local attempts."""
    database_url: str = ""
    """sqlite:////path/gateway.db or postgresql://...; empty is gateway.db in the state folder."""
    database_pool_size: int = Field(default=16, ge=2, le=200)
    """Database connections kept open."""
    database_has_pooler: bool = False
    """A transaction pooler stands before PostgreSQL: no prepared statements, no LISTEN."""
    backend: BackendName = BackendName.KUBEFLOW
    """Where gangs are launched."""
    allow_local_backend: bool = False
    """Let `serve` start processes on this machine; `dev` sets it."""
    virtual_fleet: str = "2xdgx-h100"
    """Nodes of the local and simulated back ends, as COUNTxMACHINE, comma separated."""
    kubeconfig: Path | None = None
    """Cluster credentials; without it the pod's own service account is used."""
    machines_dir: Path | None = None
    """Folder of a site's own machine types, a YAML file each, beside the built-in ones."""
    # NoDecode, or pydantic-settings would want a JSON list in the environment.
    namespaces: Annotated[tuple[str, ...], NoDecode] = ()
    """Namespaces to work in, comma separated; empty is all that the service account may use."""
    pod_priority_class: str = ""
    """Kubernetes PriorityClass for pods; empty leaves the cluster's default."""
    listen_host: str = "127.0.0.1"
    """Address to listen on; anything but loopback should stand behind TLS."""
    listen_port: int = Field(default=8470, ge=0, le=65535)
    """Port to listen on; 0 takes a free one."""
    token_file: Path | None = None
    """File of accepted tokens, one a line: name, role, namespaces, SHA-256."""
    allow_unsafe_templates: bool = False
    """Accept pod templates that could harm others (privileged, host paths and the like)."""
    topology_labels: Annotated[dict[str, str], NoDecode] = Field(default_factory=dict)
    """Node label of each level that gangs may ask for, as rack=LABEL,block=LABEL."""
    kueue_label: Literal["refuse", "map"] = "refuse"
    """What to do with a Kueue queue label on a submitted job."""
    cycle_seconds: float = Field(default=2.0, gt=0)
    """Slow, steady pace of admission cycles, in case a wake-up was lost."""
    launch_seconds: float = Field(default=1.0, gt=0)
    """Pace of launching and watching attempts."""
    inventory_seconds: float = Field(default=30.0, gt=0)
    """Pace of reading the fleet."""
    # A successor waits this long after a crash; shorter, and a slow database costs the leadership.
    lease_seconds: float = Field(default=15.0, ge=3)
    """How long a leader leads without renewing."""
    # A write that its leader has given up may still arrive: it must not outlive the next one's
    # lease.
    cluster_call_seconds: float = Field(default=5.0, gt=0, le=5)
    """Longest single call to the cluster."""
    cycle_budget: int = Field(default=10_000, ge=1)
    """Most candidates looked at in one cycle."""
    placement_policy: str = "fragmentation"
    """Which of the nodes that could take a gang does: pack, fragmentation, spread or one's own."""
    starvation_after_seconds: int = Field(default=1800, ge=0)
    """How long a job must have waited before nodes are held for it, if they alone are missing."""
    max_unlaunched: int = Field(default=200, ge=1)
    """Most gangs that may be reserved and not yet launched."""
    usage_half_life_seconds: int = Field(default=7 * 86_400, ge=60)
    """Time after which what a user held counts half, in queues of order fair_users."""
    max_pod_restarts: int = Field(default=3, ge=0)
    """Re-created pods an attempt survives."""
    keep_finished_seconds: int = Field(default=3600, ge=0)
    """How long a finished object stays in the cluster."""
    orphan_seconds: int = Field(default=60, ge=1)
    """How long local gangs live on without a gateway."""
    log_tail_lines: int = Field(default=200, ge=0)
    """Lines of each rank kept when an attempt ends."""

    @field_validator("namespaces", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        """Read a comma-separated list, as the environment has no other."""
        if not isinstance(value, str):
            return value
        return tuple(name.strip() for name in value.split(",") if name.strip())

    @field_validator("topology_labels", mode="before")
    @classmethod
    def _pairs(cls, value: object) -> object:
        """Read LEVEL=LABEL, comma separated."""
        if not isinstance(value, str):
            return value
        pairs = [part.partition("=") for part in value.split(",") if part.strip()]
        unnamed = [level for level, _, label in pairs if not (level.strip() and label.strip())]
        if unnamed:
            raise ValueError(f"{unnamed[0].strip()!r} needs a label: write LEVEL=LABEL")
        return {level.strip(): label.strip() for level, _, label in pairs}

    @model_validator(mode="after")
    def _lease_outlives_calls(self) -> Self:
        """Refuse a lease so short that no call to the cluster could ever be made under it."""
        # It is renewed after a third, and trusted a second less than the database trusts it.
        if self.lease_seconds * 2 / 3 - 1 <= self.cluster_call_seconds:
            raise ValueError(
                f"lease_seconds={self.lease_seconds} is too short for calls of "
                f"{self.cluster_call_seconds} s; take more than "
                f"{(self.cluster_call_seconds + 1) * 1.5:g}"
            )
        return self

    @property
    def url(self) -> str:
        """The database's URL with the default filled in."""
        return self.database_url or f"sqlite:///{self.state_dir / 'gateway.db'}"
