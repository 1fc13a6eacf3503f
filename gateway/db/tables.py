"""The schema, one table after another, each column with its meaning.

Names of constraints follow one convention, so that both databases can drop them in a migration.
Instants are microseconds since the epoch, UTC, in columns that end in `_us`. `xact_id` stands on
each mirrored table: PostgreSQL's transaction id of the last write, on SQLite a plain counter; a
reader that takes all rows at or above its last horizon misses none. Mirrored rows are marked, never
deleted.
"""

from enum import StrEnum
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import JSONB

from gateway.core.vocabulary import (
    AttemptPhase,
    Blocking,
    DeviceHealth,
    DeviceKind,
    JobState,
    QueueState,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# JSONB compares and indexes; SQLite keeps text, which is read back the same.
Json = JSON().with_variant(JSONB(), "postgresql")
JsonOrNull = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
Id = BigInteger().with_variant(Integer(), "sqlite")
"""SQLite gives row ids only to INTEGER primary keys."""


def one_of(column: str, values: type[StrEnum]) -> str:
    """Give the check that a text column holds one of an enum's values."""
    listed = ", ".join(f"'{member.value}'" for member in values)
    return f"{column} IN ({listed})"


def only(condition: str, on_sqlite: str = "") -> dict[str, Any]:
    """Give the options of an index over the rows of a condition.

    SQLite takes the index only where a query says the condition in the same words.
    """
    return {"postgresql_where": text(condition), "sqlite_where": text(on_sqlite or condition)}


gateway_state = Table(
    "gateway_state",
    metadata,
    # One row that writers lock in turn: counters, and the last word on what generation it is.
    Column("id", Integer, primary_key=True, doc="Always 1."),
    Column("config_generation", BigInteger, nullable=False, server_default="0"),
    Column("cycle_serial", BigInteger, nullable=False, server_default="0"),
    Column("write_counter", BigInteger, nullable=False, server_default="0", doc="SQLite's xact_id"),
    Column("is_inventory_complete", Boolean, nullable=False, server_default=false()),
    CheckConstraint("id = 1", name="single_row"),
)

leader_lease = Table(
    "leader_lease",
    metadata,
    Column("id", Integer, primary_key=True, doc="Always 1."),
    Column("holder", String(128), nullable=False, server_default=text("''")),
    Column("epoch", BigInteger, nullable=False, server_default="0", doc="Grows at each take-over."),
    Column("expires_us", BigInteger, nullable=False, server_default="0", doc="Database clock."),
    CheckConstraint("id = 1", name="single_row"),
)

flavors = Table(
    "flavors",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("node_labels", Json, nullable=False),
    Column("tolerations", Json, nullable=False),
    Column("version", BigInteger, nullable=False, server_default="1"),
)

cohorts = Table(
    "cohorts",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("parent", String(63), ForeignKey("cohorts.name")),
    Column("weight", BigInteger, nullable=False, server_default="1"),
    Column("version", BigInteger, nullable=False, server_default="1"),
    CheckConstraint("weight >= 0", name="weight_not_negative"),
)

priority_classes = Table(
    "priority_classes",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("value", BigInteger, nullable=False, doc="Higher runs sooner, across queues too."),
    Column("version", BigInteger, nullable=False, server_default="1"),
)

queues = Table(
    "queues",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("cohort", String(63), ForeignKey("cohorts.name")),
    Column("weight", BigInteger, nullable=False, server_default="1"),
    Column("state", String(16), nullable=False, server_default=QueueState.OPEN.value),
    Column("order_policy", String(32), nullable=False, server_default="priority"),
    Column("priority_min", BigInteger, nullable=False),
    Column("priority_max", BigInteger, nullable=False),
    Column("namespaces", Json, nullable=False),
    Column("flavors", Json, nullable=False, doc="Order of preference."),
    Column("version", BigInteger, nullable=False, server_default="1"),
    Column("blocking", String(16), nullable=False, server_default=Blocking.BEST_EFFORT.value),
    Column("when_can_borrow", String(16), nullable=False, server_default="borrow"),
    Column("ageing", Json, nullable=False, server_default=text("'{}'"), doc="per_hour, cap."),
    Column("caps", Json, nullable=False, server_default=text("'{}'"), doc="Missing is no cap."),
    Column("budget", JsonOrNull, doc="gpu_seconds, window_seconds, starts_us."),
    Column("priority_classes", Json, nullable=False, server_default=text("'[]'"), doc="Allowed."),
    CheckConstraint("weight >= 0", name="weight_not_negative"),
    CheckConstraint("priority_min <= priority_max", name="priority_range"),
    CheckConstraint(one_of("state", QueueState), name="state"),
)

quotas = Table(
    "quotas",
    metadata,
    Column("owner_kind", String(8), primary_key=True, doc="queue or cohort."),
    Column("owner", String(63), primary_key=True),
    Column("flavor", String(63), ForeignKey("flavors.name"), primary_key=True),
    Column("resource", String(253), primary_key=True),
    Column("nominal", BigInteger, nullable=False, doc="Base units."),
    Column("borrowing_limit", BigInteger, doc="NULL is no limit."),
    Column("lending_limit", BigInteger, doc="NULL is no limit."),
    CheckConstraint("owner_kind IN ('queue', 'cohort')", name="owner_kind"),
    CheckConstraint("nominal >= 0", name="nominal_not_negative"),
    CheckConstraint("borrowing_limit >= 0", name="borrowing_not_negative"),
    # NULL passes a check, so no limit is no special case.
    CheckConstraint("lending_limit >= 0 AND lending_limit <= nominal", name="lending_range"),
)

dated_changes = Table(
    "dated_changes",
    metadata,
    Column("owner_kind", String(8), primary_key=True, doc="queue or cohort."),
    Column("owner", String(63), primary_key=True),
    Column("flavor", String(63), ForeignKey("flavors.name"), primary_key=True),
    Column("resource", String(253), primary_key=True),
    Column("at_us", BigInteger, primary_key=True),
    Column("nominal", BigInteger, doc="NULL leaves it as it was, as in the next two."),
    Column("borrowing_limit", BigInteger),
    Column("lending_limit", BigInteger),
    CheckConstraint("owner_kind IN ('queue', 'cohort')", name="owner_kind"),
    CheckConstraint(
        "nominal >= 0 AND borrowing_limit >= 0 AND lending_limit >= 0", name="not_negative"
    ),
)

namespace_defaults = Table(
    "namespace_defaults",
    metadata,
    Column("namespace", String(63), primary_key=True),
    Column("queue", String(63), ForeignKey("queues.name"), nullable=False),
)

request_classes = Table(
    "request_classes",
    metadata,
    Column("id", Id, primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("shape", Json, nullable=False, doc="Canonical JSON of the pod sets."),
    Column("xact_id", BigInteger, nullable=False),
    Index("ix_request_classes_xact_id", "xact_id"),
)

TIMED_WAITING = "queue_timeout_seconds IS NOT NULL AND state IN ('pending', 'held')"

jobs = Table(
    "jobs",
    metadata,
    Column("id", Id, primary_key=True),
    Column("uid", String(36), nullable=False, unique=True, doc="Public id."),
    Column("name", String(63), nullable=False),
    Column("namespace", String(63), nullable=False),
    Column("queue", String(63), nullable=False),
    Column("user_name", String(128), nullable=False, doc="Who submitted it."),
    Column("idempotency_key", String(255), doc="Scope: user, namespace."),
    Column("spec", Json, nullable=False, doc="JobSpec in normal form."),
    Column("spec_digest", String(64), nullable=False),
    Column("class_id", Id, ForeignKey("request_classes.id"), nullable=False),
    Column("priority", BigInteger, nullable=False, doc="Clamped to the queue's range."),
    Column("pods", Integer, nullable=False),
    Column("gpus", Integer, nullable=False),
    Column("rdma", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("version", BigInteger, nullable=False, server_default="1", doc="Compare-and-set."),
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("reason", String(32), doc="Primary reason code while waiting."),
    Column("reason_serial", BigInteger, nullable=False, server_default="0"),
    Column("stop_outcome", String(16), doc="What stopping becomes."),
    Column("end_reason", String(32)),
    Column("message", Text, nullable=False, server_default=text("''")),
    Column("exit_code", Integer),
    Column("is_quarantined", Boolean, nullable=False, server_default=false()),
    Column("queue_timeout_seconds", BigInteger),
    Column("run_timeout_seconds", BigInteger),
    Column("start_timeout_seconds", BigInteger, nullable=False),
    Column("submitted_us", BigInteger, nullable=False),
    Column("reserved_us", BigInteger),
    Column("started_us", BigInteger),
    Column("stopping_us", BigInteger),
    Column("ended_us", BigInteger),
    Column("xact_id", BigInteger, nullable=False),
    Column("priority_class", String(63), nullable=False, server_default=text("''")),
    Column("rank", BigInteger, nullable=False, server_default="0", doc="Value of its class."),
    Column("eligible_us", BigInteger, nullable=False, server_default="0", doc="0 is at once."),
    Column("deadline_us", BigInteger, nullable=False, server_default="0", doc="0 is none."),
    Column("expected_seconds", BigInteger, nullable=False, server_default="0", doc="0: unknown."),
    # NULL keys differ from each other on both databases: jobs without one never collide.
    UniqueConstraint("user_name", "namespace", "idempotency_key"),
    CheckConstraint(one_of("state", JobState), name="state"),
    # An outcome is stored with the step into stopping, or a crash would forget why it stops.
    CheckConstraint("(state = 'stopping') = (stop_outcome IS NOT NULL)", name="stopping_outcome"),
    CheckConstraint(
        "(state IN ('succeeded', 'failed', 'cancelled')) = (ended_us IS NOT NULL)",
        name="ended_when_terminal",
    ),
    # The mirror reads what changed since its horizon many times a second.
    Index("ix_jobs_xact_id", "xact_id"),
    # For lists by state, newest first, with the row id as their cursor.
    Index("ix_jobs_state_id", "state", "id"),
    Index("ix_jobs_queue_state", "queue", "state"),
    Index("ix_jobs_namespace_id", "namespace", "id"),
    # Every second somebody asks who waited too long; hardly anybody did.
    Index("ix_jobs_timed_waiting", "queue_timeout_seconds", "submitted_us", **only(TIMED_WAITING)),
    Index(
        # Among live jobs only: a name may be used again once its job has ended.
        "uq_jobs_live_name",
        "namespace",
        "name",
        unique=True,
        **only("state NOT IN ('succeeded', 'failed', 'cancelled')"),
    ),
)

class_holds = Table(
    "class_holds",
    metadata,
    Column("queue", String(63), primary_key=True),
    Column("class_id", Id, ForeignKey("request_classes.id"), primary_key=True),
    Column("reason", String(32), nullable=False),
    Column("explanation", Json, nullable=False, doc="Causes, quota path, limiting node, unblock."),
    Column("config_generation", BigInteger, nullable=False),
    Column("serial", BigInteger, nullable=False, doc="Cycle whose state it describes."),
    Column("decided_us", BigInteger, nullable=False),
    Column("blocked_since_us", BigInteger, doc="Since when nothing but nodes is missing."),
)

queue_holds = Table(
    "queue_holds",
    metadata,
    Column("queue", String(63), primary_key=True),
    Column("user_name", String(128), primary_key=True, doc="Empty for the whole queue."),
    Column("reason", String(32), nullable=False, doc="An eligibility code."),
    Column("detail", Text, nullable=False),
    Column("decided_us", BigInteger, nullable=False),
)

node_holds = Table(
    "node_holds",
    metadata,
    Column("flavor", String(63), primary_key=True),
    Column("job_id", Id, nullable=False, doc="The starving job that the nodes wait for."),
    Column("node_ids", Json, nullable=False),
    Column("since_us", BigInteger, nullable=False),
    Column("xact_id", BigInteger, nullable=False),
)

user_usage = Table(
    "user_usage",
    metadata,
    Column("queue", String(63), primary_key=True),
    Column("user_name", String(128), primary_key=True),
    Column("usage", BigInteger, nullable=False, doc="Decayed, in 1/2^40 of capacity, at at_us."),
    Column("at_us", BigInteger, nullable=False),
    Column("xact_id", BigInteger, nullable=False),
    Index("ix_user_usage_xact_id", "xact_id"),
)

attempts = Table(
    "attempts",
    metadata,
    Column("id", Id, primary_key=True),
    Column("job_id", Id, ForeignKey("jobs.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("phase", String(16), nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("backend", String(16), nullable=False),
    Column("guarantee", String(20), nullable=False),
    Column("object_name", String(63), nullable=False),
    Column("object_uid", String(64), nullable=False, server_default=text("''")),
    Column("is_object_deleted", Boolean, nullable=False, server_default=false()),
    Column("end_reason", String(32)),
    Column("message", Text, nullable=False, server_default=text("''")),
    Column("exit_code", Integer),
    Column("launch_failures", Integer, nullable=False, server_default="0"),
    Column("retry_us", BigInteger, nullable=False, server_default="0", doc="No launch try before."),
    Column("reserved_us", BigInteger, nullable=False),
    Column("sent_us", BigInteger, doc="When a create was last sent; fences a late 'not found'."),
    Column("launched_us", BigInteger, doc="Unsuspended."),
    Column("started_us", BigInteger, doc="All pods ready."),
    Column("closed_us", BigInteger),
    Column("usage_part", BigInteger, nullable=False, server_default="0", doc="Held, in 1/2^40."),
    Column("usage_entry", BigInteger, nullable=False, server_default="0", doc="Counted so far."),
    Column("usage_at_us", BigInteger, doc="As of when, if later than the reservation."),
    UniqueConstraint("job_id", "number"),
    CheckConstraint(one_of("phase", AttemptPhase), name="phase"),
    CheckConstraint("(phase = 'closed') = (closed_us IS NOT NULL)", name="closed_at"),
    Index("ix_attempts_phase", "phase"),
    # Of the ended ones hardly any has something left in the cluster.
    Index(
        "ix_attempts_undeleted",
        "closed_us",
        **only("NOT is_object_deleted", "is_object_deleted = 0"),
    ),
    # At most one live attempt, so at most one live object in the cluster.
    Index("uq_attempts_live_job", "job_id", unique=True, **only("phase <> 'closed'")),
)

nodes = Table(
    "nodes",
    metadata,
    Column("id", Id, primary_key=True),
    Column("name", String(253), nullable=False, unique=True),
    Column("uid", String(64), nullable=False),
    Column("machine_type", String(63), nullable=False),
    Column("health", String(16), nullable=False),
    Column("is_cordoned", Boolean, nullable=False, server_default=false(), doc="By our admin."),
    Column("cordon_reason", Text, nullable=False, server_default=text("''")),
    Column("is_present", Boolean, nullable=False, server_default=true()),
    Column("labels", Json, nullable=False),
    Column("taints", Json, nullable=False),
    Column("seen_us", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False, server_default="1"),
    Column("xact_id", BigInteger, nullable=False),
    CheckConstraint(one_of("health", DeviceHealth), name="health"),
    Index("ix_nodes_xact_id", "xact_id"),
)

node_amounts = Table(
    "node_amounts",
    metadata,
    Column("node_id", Id, ForeignKey("nodes.id"), primary_key=True),
    Column("resource", String(253), primary_key=True, doc="cpu, memory, pods or extended."),
    Column("total", BigInteger, nullable=False, doc="Allocatable, base units."),
    Column("foreign_use", BigInteger, nullable=False, server_default="0", doc="Not ours."),
    Column("free", BigInteger, nullable=False, doc="Reduced in the reserving transaction."),
    # The last judge of amounts: a reservation beyond what is free fails here.
    CheckConstraint("free >= 0", name="free_not_negative"),
)

devices = Table(
    "devices",
    metadata,
    Column("id", Id, primary_key=True),
    Column("node_id", Id, ForeignKey("nodes.id"), nullable=False),
    Column("kind", String(8), nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("name", String(63), nullable=False),
    Column("uuid", String(128), nullable=False, server_default=text("''")),
    Column("pci_address", String(32), nullable=False, server_default=text("''")),
    Column("switch", Integer, nullable=False, server_default="-1"),
    Column("numa", Integer, nullable=False, server_default="-1"),
    Column("rail", Integer, nullable=False, server_default="-1"),
    Column("nvlink_group", Integer, nullable=False, server_default="-1"),
    Column("health", String(16), nullable=False),
    Column("is_present", Boolean, nullable=False, server_default=true()),
    Column("is_foreign", Boolean, nullable=False, server_default=false()),
    Column("units_total", Integer, nullable=False, server_default="100"),
    Column("units_free", Integer, nullable=False, server_default="100"),
    Column("version", BigInteger, nullable=False, server_default="1"),
    Column("xact_id", BigInteger, nullable=False),
    UniqueConstraint("node_id", "kind", "ordinal"),
    CheckConstraint(one_of("kind", DeviceKind), name="kind"),
    CheckConstraint(one_of("health", DeviceHealth), name="health"),
    # The last judge of shared devices, as the unique index below is of whole ones.
    CheckConstraint("units_free >= 0 AND units_free <= units_total", name="units_range"),
    Index("ix_devices_xact_id", "xact_id"),
)

assignments = Table(
    "assignments",
    metadata,
    Column("id", Id, primary_key=True),
    Column("attempt_id", Id, ForeignKey("attempts.id"), nullable=False),
    Column("pod_set", String(16), nullable=False),
    Column("pod_index", Integer, nullable=False),
    Column("rank", Integer, nullable=False),
    Column("node_id", Id, ForeignKey("nodes.id"), nullable=False),
    Column("amounts", Json, nullable=False, doc="What is taken from node_amounts, pods included."),
    Column("is_live", Boolean, nullable=False, server_default=true()),
    Column("tolerations", Json, nullable=False, server_default=text("'[]'"), doc="Its flavor's."),
    UniqueConstraint("attempt_id", "pod_set", "pod_index"),
    # Freeing sums up what is live on a node; the ended ones are most of the table.
    Index("ix_assignments_live_node", "node_id", **only("is_live", "is_live = 1")),
)

device_grants = Table(
    "device_grants",
    metadata,
    Column("id", Id, primary_key=True),
    Column("assignment_id", Id, ForeignKey("assignments.id"), nullable=False),
    Column("device_id", Id, ForeignKey("devices.id"), nullable=False),
    Column("units", Integer, nullable=False),
    Column("is_whole", Boolean, nullable=False),
    Column("is_live", Boolean, nullable=False, server_default=true()),
    CheckConstraint("units > 0", name="units_positive"),
    Index("ix_device_grants_assignment_id", "assignment_id"),
    # The history of one device, out of a table that keeps every grant there ever was.
    Index("ix_device_grants_device_id_id", "device_id", "id"),
    # A device is held whole by one live gang, whatever any program believes.
    Index(
        "uq_device_grants_whole_device", "device_id", unique=True, **only("is_live AND is_whole")
    ),
)

charges = Table(
    "charges",
    metadata,
    Column("id", Id, primary_key=True),
    Column("attempt_id", Id, ForeignKey("attempts.id"), nullable=False),
    Column("queue", String(63), nullable=False),
    Column("flavor", String(63), nullable=False),
    Column("resource", String(253), nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("is_live", Boolean, nullable=False, server_default=true()),
    Column("xact_id", BigInteger, nullable=False),
    Column("user_name", String(128), nullable=False, server_default=text("''")),
    Column("reserved_us", BigInteger, nullable=False, server_default="0"),
    Column("closed_us", BigInteger, doc="When the devices came back."),
    # A pair is charged once for a gang, so a repeated insert cannot double it.
    UniqueConstraint("attempt_id", "flavor", "resource"),
    Index("ix_charges_xact_id", "xact_id"),
    # Ended charges are most of the table, and usage is what the live ones are.
    Index("ix_charges_live", "queue", "flavor", "resource", **only("is_live", "is_live = 1")),
    # Budgets look at what a window's GPUs were used for; only these rows pay for the index.
    Index(
        "ix_charges_closed_gpu",
        "queue",
        "closed_us",
        **only("closed_us IS NOT NULL AND resource = 'gpu'"),
    ),
)

events = Table(
    "events",
    metadata,
    Column("id", Id, primary_key=True),
    Column("at_us", BigInteger, nullable=False),
    Column("job_id", Id, ForeignKey("jobs.id")),
    Column("kind", String(48), nullable=False),
    Column("actor", String(128), nullable=False),
    Column("detail", Text, nullable=False, server_default=text("''")),
    Column("data", Json, nullable=False),
    Column("xact_id", BigInteger, nullable=False, doc="Gives the order in which they are told."),
    Index("ix_events_job_id_id", "job_id", "id"),
    # Streams are told in the order of commits, which row ids alone do not give on PostgreSQL.
    Index("ix_events_xact_id_id", "xact_id", "id"),
)

log_tails = Table(
    "log_tails",
    metadata,
    Column("attempt_id", Id, ForeignKey("attempts.id"), primary_key=True),
    Column("rank", Integer, primary_key=True),
    Column("lines", Text, nullable=False, doc="Last lines, cut to 64 KiB."),
)
