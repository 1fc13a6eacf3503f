"""First schema.

Expand first, contract one release later; never edited after release.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = "0001"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

# On PostgreSQL JSONB, which compares and indexes by content; SQLite keeps the text.
Json = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
# SQLite numbers rows by itself only where the type is exactly INTEGER PRIMARY KEY.
Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    for create in TABLES.values():
        create()


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)


def _create_cohorts() -> None:
    op.create_table(
        "cohorts",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("parent", sa.String(length=63), nullable=True),
        sa.Column("weight", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.CheckConstraint("weight >= 0", name=op.f("ck_cohorts_weight_not_negative")),
        sa.ForeignKeyConstraint(["parent"], ["cohorts.name"], name="fk_cohorts_parent"),
        sa.PrimaryKeyConstraint("name", name="pk_cohorts"),
    )


def _create_flavors() -> None:
    op.create_table(
        "flavors",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("node_labels", Json, nullable=False),
        sa.Column("tolerations", Json, nullable=False),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_flavors"),
    )


def _create_gateway_state() -> None:
    op.create_table(
        "gateway_state",
        sa.Column("id", sa.Integer(), nullable=False),
        # Raised by every change of definitions: a stored hold tells whether it is of today's rules.
        sa.Column("config_generation", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cycle_serial", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("write_counter", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("is_inventory_complete", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_gateway_state_single_row")),
        sa.PrimaryKeyConstraint("id", name="pk_gateway_state"),
    )


def _create_leader_lease() -> None:
    op.create_table(
        "leader_lease",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("holder", sa.String(length=128), server_default=sa.text("''"), nullable=False),
        # The fence: a decision carries its leader's epoch, and none of an older one is accepted.
        sa.Column("epoch", sa.BigInteger(), server_default="0", nullable=False),
        # Times are whole microseconds since 1970 in UTC: both databases compare them alike.
        sa.Column("expires_us", sa.BigInteger(), server_default="0", nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_leader_lease_single_row")),
        sa.PrimaryKeyConstraint("id", name="pk_leader_lease"),
    )


def _create_nodes() -> None:
    op.create_table(
        "nodes",
        sa.Column("id", Id, nullable=False),
        sa.Column("name", sa.String(length=253), nullable=False),
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("machine_type", sa.String(length=63), nullable=False),
        sa.Column("health", sa.String(length=16), nullable=False),
        sa.Column("is_cordoned", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("cordon_reason", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("is_present", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("labels", Json, nullable=False),
        sa.Column("taints", Json, nullable=False),
        sa.Column("seen_us", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        # The writer's transaction (PostgreSQL) or counter: readers fetch only what changed since.
        sa.Column("xact_id", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "health IN ('healthy', 'cordoned', 'unhealthy')", name=op.f("ck_nodes_health")
        ),
        sa.PrimaryKeyConstraint("id", name="pk_nodes"),
        sa.UniqueConstraint("name", name="uq_nodes_name"),
    )
    op.create_index("ix_nodes_xact_id", "nodes", ["xact_id"], unique=False)


def _create_request_classes() -> None:
    op.create_table(
        "request_classes",
        sa.Column("id", Id, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("shape", Json, nullable=False),
        sa.Column("xact_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_request_classes"),
        sa.UniqueConstraint("digest", name="uq_request_classes_digest"),
    )
    op.create_index("ix_request_classes_xact_id", "request_classes", ["xact_id"], unique=False)


def _create_class_holds() -> None:
    op.create_table(
        "class_holds",
        sa.Column("queue", sa.String(length=63), nullable=False),
        sa.Column("class_id", Id, nullable=False),
        sa.Column("reason", sa.String(length=32), nullable=False),
        sa.Column("explanation", Json, nullable=False),
        sa.Column("config_generation", sa.BigInteger(), nullable=False),
        sa.Column("serial", sa.BigInteger(), nullable=False),
        sa.Column("decided_us", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["class_id"], ["request_classes.id"], name="fk_class_holds_class_id"
        ),
        sa.PrimaryKeyConstraint("queue", "class_id", name="pk_class_holds"),
    )


def _create_devices() -> None:
    op.create_table(
        "devices",
        sa.Column("id", Id, nullable=False),
        sa.Column("node_id", Id, nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("uuid", sa.String(length=128), server_default=sa.text("''"), nullable=False),
        sa.Column(
            "pci_address", sa.String(length=32), server_default=sa.text("''"), nullable=False
        ),
        sa.Column("switch", sa.Integer(), server_default="-1", nullable=False),
        sa.Column("numa", sa.Integer(), server_default="-1", nullable=False),
        sa.Column("rail", sa.Integer(), server_default="-1", nullable=False),
        sa.Column("nvlink_group", sa.Integer(), server_default="-1", nullable=False),
        sa.Column("health", sa.String(length=16), nullable=False),
        sa.Column("is_present", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("is_foreign", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("units_total", sa.Integer(), server_default="100", nullable=False),
        sa.Column("units_free", sa.Integer(), server_default="100", nullable=False),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("xact_id", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "health IN ('healthy', 'cordoned', 'unhealthy')", name=op.f("ck_devices_health")
        ),
        sa.CheckConstraint("kind IN ('gpu', 'rdma')", name=op.f("ck_devices_kind")),
        # Judged at each statement: no two reservations take the same units, in any order.
        sa.CheckConstraint(
            "units_free >= 0 AND units_free <= units_total", name=op.f("ck_devices_units_range")
        ),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="fk_devices_node_id"),
        sa.PrimaryKeyConstraint("id", name="pk_devices"),
        sa.UniqueConstraint("node_id", "kind", "ordinal", name="uq_devices_node_id_kind_ordinal"),
    )
    op.create_index("ix_devices_xact_id", "devices", ["xact_id"], unique=False)


# Equalities of truth values below: each side implies the other, so no half of a step is stored.
def _create_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", Id, nullable=False),
        sa.Column("uid", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("namespace", sa.String(length=63), nullable=False),
        sa.Column("queue", sa.String(length=63), nullable=False),
        sa.Column("user_name", sa.String(length=128), nullable=False),
        sa.Column("idempotency_key", sa.String(length=255), nullable=True),
        sa.Column("spec", Json, nullable=False),
        sa.Column("spec_digest", sa.String(length=64), nullable=False),
        sa.Column("class_id", Id, nullable=False),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("pods", sa.Integer(), nullable=False),
        sa.Column("gpus", sa.Integer(), nullable=False),
        sa.Column("rdma", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("reason", sa.String(length=32), nullable=True),
        sa.Column("reason_serial", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("stop_outcome", sa.String(length=16), nullable=True),
        sa.Column("end_reason", sa.String(length=32), nullable=True),
        sa.Column("message", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("is_quarantined", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("queue_timeout_seconds", sa.BigInteger(), nullable=True),
        sa.Column("run_timeout_seconds", sa.BigInteger(), nullable=True),
        sa.Column("start_timeout_seconds", sa.BigInteger(), nullable=False),
        sa.Column("submitted_us", sa.BigInteger(), nullable=False),
        sa.Column("reserved_us", sa.BigInteger(), nullable=True),
        sa.Column("started_us", sa.BigInteger(), nullable=True),
        sa.Column("stopping_us", sa.BigInteger(), nullable=True),
        sa.Column("ended_us", sa.BigInteger(), nullable=True),
        sa.Column("xact_id", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "(state = 'stopping') = (stop_outcome IS NOT NULL)",
            name=op.f("ck_jobs_stopping_outcome"),
        ),
        sa.CheckConstraint(
            "(state IN ('succeeded', 'failed', 'cancelled')) = (ended_us IS NOT NULL)",
            name=op.f("ck_jobs_ended_when_terminal"),
        ),
        sa.CheckConstraint(
            "state IN ('pending', 'held', 'reserved', 'launching', 'running', 'stopping', "
            "'succeeded', 'failed', 'cancelled')",
            name=op.f("ck_jobs_state"),
        ),
        sa.ForeignKeyConstraint(["class_id"], ["request_classes.id"], name="fk_jobs_class_id"),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
        sa.UniqueConstraint("uid", name="uq_jobs_uid"),
        sa.UniqueConstraint(
            "user_name",
            "namespace",
            "idempotency_key",
            name="uq_jobs_user_name_namespace_idempotency_key",
        ),
    )
    _index_jobs()


def _index_jobs() -> None:
    op.create_index("ix_jobs_namespace_id", "jobs", ["namespace", "id"], unique=False)
    op.create_index("ix_jobs_queue_state", "jobs", ["queue", "state"], unique=False)
    op.create_index("ix_jobs_state_id", "jobs", ["state", "id"], unique=False)
    op.create_index("ix_jobs_xact_id", "jobs", ["xact_id"], unique=False)
    op.create_index(
        # A partial index: a name is taken while its job lives, and free again once it has ended.
        "uq_jobs_live_name",
        "jobs",
        ["namespace", "name"],
        unique=True,
        postgresql_where=sa.text("state NOT IN ('succeeded', 'failed', 'cancelled')"),
        sqlite_where=sa.text("state NOT IN ('succeeded', 'failed', 'cancelled')"),
    )


def _create_node_amounts() -> None:
    op.create_table(
        "node_amounts",
        sa.Column("node_id", Id, nullable=False),
        sa.Column("resource", sa.String(length=253), nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.Column("foreign_use", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("free", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("free >= 0", name=op.f("ck_node_amounts_free_not_negative")),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="fk_node_amounts_node_id"),
        sa.PrimaryKeyConstraint("node_id", "resource", name="pk_node_amounts"),
    )


def _create_queues() -> None:
    op.create_table(
        "queues",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("cohort", sa.String(length=63), nullable=True),
        sa.Column("weight", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("state", sa.String(length=16), server_default="open", nullable=False),
        sa.Column("order_policy", sa.String(length=32), server_default="priority", nullable=False),
        sa.Column("priority_min", sa.BigInteger(), nullable=False),
        sa.Column("priority_max", sa.BigInteger(), nullable=False),
        sa.Column("namespaces", Json, nullable=False),
        sa.Column("flavors", Json, nullable=False),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.CheckConstraint("state IN ('open', 'paused')", name=op.f("ck_queues_state")),
        sa.CheckConstraint("priority_min <= priority_max", name=op.f("ck_queues_priority_range")),
        sa.CheckConstraint("weight >= 0", name=op.f("ck_queues_weight_not_negative")),
        sa.ForeignKeyConstraint(["cohort"], ["cohorts.name"], name="fk_queues_cohort"),
        sa.PrimaryKeyConstraint("name", name="pk_queues"),
    )


def _create_quotas() -> None:
    op.create_table(
        "quotas",
        sa.Column("owner_kind", sa.String(length=8), nullable=False),
        sa.Column("owner", sa.String(length=63), nullable=False),
        sa.Column("flavor", sa.String(length=63), nullable=False),
        sa.Column("resource", sa.String(length=253), nullable=False),
        sa.Column("nominal", sa.BigInteger(), nullable=False),
        sa.Column("borrowing_limit", sa.BigInteger(), nullable=True),
        sa.Column("lending_limit", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("owner_kind IN ('queue', 'cohort')", name=op.f("ck_quotas_owner_kind")),
        sa.CheckConstraint("borrowing_limit >= 0", name=op.f("ck_quotas_borrowing_not_negative")),
        sa.CheckConstraint(
            "lending_limit >= 0 AND lending_limit <= nominal", name=op.f("ck_quotas_lending_range")
        ),
        sa.CheckConstraint("nominal >= 0", name=op.f("ck_quotas_nominal_not_negative")),
        sa.ForeignKeyConstraint(["flavor"], ["flavors.name"], name="fk_quotas_flavor"),
        sa.PrimaryKeyConstraint("owner_kind", "owner", "flavor", "resource", name="pk_quotas"),
    )


def _create_attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("id", Id, nullable=False),
        sa.Column("job_id", Id, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("phase", sa.String(length=16), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("backend", sa.String(length=16), nullable=False),
        sa.Column("guarantee", sa.String(length=20), nullable=False),
        sa.Column("object_name", sa.String(length=63), nullable=False),
        sa.Column("object_uid", sa.String(length=64), server_default=sa.text("''"), nullable=False),
        sa.Column("is_object_deleted", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("end_reason", sa.String(length=32), nullable=True),
        sa.Column("message", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("launch_failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("retry_us", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("reserved_us", sa.BigInteger(), nullable=False),
        sa.Column("sent_us", sa.BigInteger(), nullable=True),
        sa.Column("launched_us", sa.BigInteger(), nullable=True),
        sa.Column("started_us", sa.BigInteger(), nullable=True),
        sa.Column("closed_us", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "(phase = 'closed') = (closed_us IS NOT NULL)", name=op.f("ck_attempts_closed_at")
        ),
        sa.CheckConstraint(
            "phase IN ('intended', 'created', 'held_in_cluster', 'unsuspended', 'open', 'closed')",
            name=op.f("ck_attempts_phase"),
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_attempts_job_id"),
        sa.PrimaryKeyConstraint("id", name="pk_attempts"),
        sa.UniqueConstraint("job_id", "number", name="uq_attempts_job_id_number"),
    )
    op.create_index("ix_attempts_phase", "attempts", ["phase"], unique=False)
    op.create_index(
        # One open attempt for each job: a leader that lost its lease cannot launch it twice.
        "uq_attempts_live_job",
        "attempts",
        ["job_id"],
        unique=True,
        postgresql_where=sa.text("phase <> 'closed'"),
        sqlite_where=sa.text("phase <> 'closed'"),
    )


def _create_events() -> None:
    op.create_table(
        "events",
        sa.Column("id", Id, nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("job_id", Id, nullable=True),
        sa.Column("kind", sa.String(length=48), nullable=False),
        sa.Column("actor", sa.String(length=128), nullable=False),
        sa.Column("detail", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("data", Json, nullable=False),
        sa.Column("xact_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_events_job_id"),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
    )
    op.create_index("ix_events_job_id_id", "events", ["job_id", "id"], unique=False)
    # Readers go on by (xact_id, id), up to the oldest open transaction: lower ids may commit later.
    op.create_index("ix_events_xact_id_id", "events", ["xact_id", "id"], unique=False)


def _create_namespace_defaults() -> None:
    op.create_table(
        "namespace_defaults",
        sa.Column("namespace", sa.String(length=63), nullable=False),
        sa.Column("queue", sa.String(length=63), nullable=False),
        sa.ForeignKeyConstraint(["queue"], ["queues.name"], name="fk_namespace_defaults_queue"),
        sa.PrimaryKeyConstraint("namespace", name="pk_namespace_defaults"),
    )


def _create_assignments() -> None:
    op.create_table(
        "assignments",
        sa.Column("id", Id, nullable=False),
        sa.Column("attempt_id", Id, nullable=False),
        sa.Column("pod_set", sa.String(length=16), nullable=False),
        sa.Column("pod_index", sa.Integer(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("node_id", Id, nullable=False),
        sa.Column("amounts", Json, nullable=False),
        sa.Column("is_live", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name="fk_assignments_attempt_id"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="fk_assignments_node_id"),
        sa.PrimaryKeyConstraint("id", name="pk_assignments"),
        sa.UniqueConstraint(
            "attempt_id", "pod_set", "pod_index", name="uq_assignments_attempt_id_pod_set_pod_index"
        ),
    )
    op.create_index(
        "ix_assignments_live_node",
        "assignments",
        ["node_id"],
        unique=False,
        postgresql_where=sa.text("is_live"),
        sqlite_where=sa.text("is_live"),
    )


def _create_charges() -> None:
    op.create_table(
        "charges",
        sa.Column("id", Id, nullable=False),
        sa.Column("attempt_id", Id, nullable=False),
        sa.Column("queue", sa.String(length=63), nullable=False),
        sa.Column("flavor", sa.String(length=63), nullable=False),
        sa.Column("resource", sa.String(length=253), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("is_live", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("xact_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name="fk_charges_attempt_id"),
        sa.PrimaryKeyConstraint("id", name="pk_charges"),
        sa.UniqueConstraint(
            "attempt_id", "flavor", "resource", name="uq_charges_attempt_id_flavor_resource"
        ),
    )
    op.create_index("ix_charges_xact_id", "charges", ["xact_id"], unique=False)


def _create_log_tails() -> None:
    op.create_table(
        "log_tails",
        sa.Column("attempt_id", Id, nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("lines", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name="fk_log_tails_attempt_id"),
        sa.PrimaryKeyConstraint("attempt_id", "rank", name="pk_log_tails"),
    )


def _create_device_grants() -> None:
    op.create_table(
        "device_grants",
        sa.Column("id", Id, nullable=False),
        sa.Column("assignment_id", Id, nullable=False),
        sa.Column("device_id", Id, nullable=False),
        sa.Column("units", sa.Integer(), nullable=False),
        sa.Column("is_whole", sa.Boolean(), nullable=False),
        sa.Column("is_live", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.CheckConstraint("units > 0", name=op.f("ck_device_grants_units_positive")),
        sa.ForeignKeyConstraint(
            ["assignment_id"], ["assignments.id"], name="fk_device_grants_assignment_id"
        ),
        sa.ForeignKeyConstraint(["device_id"], ["devices.id"], name="fk_device_grants_device_id"),
        sa.PrimaryKeyConstraint("id", name="pk_device_grants"),
    )
    op.create_index(
        "ix_device_grants_assignment_id", "device_grants", ["assignment_id"], unique=False
    )
    op.create_index(
        # The last judge: of two reservations of one whole device the second insert fails.
        "uq_device_grants_whole_device",
        "device_grants",
        ["device_id"],
        unique=True,
        postgresql_where=sa.text("is_live AND is_whole"),
        sqlite_where=sa.text("is_live AND is_whole"),
    )


TABLES = {
    "cohorts": _create_cohorts,
    "flavors": _create_flavors,
    "gateway_state": _create_gateway_state,
    "leader_lease": _create_leader_lease,
    "nodes": _create_nodes,
    "request_classes": _create_request_classes,
    "class_holds": _create_class_holds,
    "devices": _create_devices,
    "jobs": _create_jobs,
    "node_amounts": _create_node_amounts,
    "queues": _create_queues,
    "quotas": _create_quotas,
    "attempts": _create_attempts,
    "events": _create_events,
    "namespace_defaults": _create_namespace_defaults,
    "assignments": _create_assignments,
    "charges": _create_charges,
    "log_tails": _create_log_tails,
    "device_grants": _create_device_grants,
}
"""Tables in order of creation."""
