"""Everything that is stored has an owner, and keys say who somebody is.

What is there already belongs to `local`. Names and digests are those of an owner: two may have the
same. Going back forgets all keys, and what others than `local` have.

PostgreSQL changes its tables in place. SQLite cannot: there each is copied, parents first, and the
old ones are dropped in the opposite order, so that no row is deleted because its parent is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

# Text that is a key is compared byte by byte on both databases.
KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
TIME = sa.DateTime(timezone=True)
FIRST = "local"


class _Reference(NamedTuple):
    """A foreign key, without the owner."""

    table: str
    name: str
    columns: tuple[str, ...]
    target: str
    targets: tuple[str, ...]
    on_delete: str | None = None


# Every table that is changed, parents first, with its key; those of the second kind keep theirs.
_OWNED_KEYS = {
    "trace": ("digest",),
    "profile": ("name",),
    "revision": ("profile_name", "number"),
    "verification": ("profile_name", "profile_revision"),
    "compiled_table": ("digest",),
    "compiled_table_file": ("digest",),
    "active_table": ("profile_name", "profile_revision"),
}
_KEPT_KEYS = {"fit": ("id",), "further_trace": ("fit_id", "place")}
_PARENTS_FIRST = ("trace", "fit", "further_trace", *list(_OWNED_KEYS)[1:])

_REVISION = ("profile_name", "profile_revision"), "revision", ("profile_name", "number")
_OWNED = (
    _Reference("fit", "fk_fit_trace_digest", ("trace_digest",), "trace", ("digest",)),
    _Reference(
        "further_trace", "fk_further_trace_trace_digest", ("trace_digest",), "trace", ("digest",)
    ),
    _Reference(
        "revision", "fk_revision_profile_name", ("profile_name",), "profile", ("name",), "CASCADE"
    ),
    _Reference("verification", "fk_verification_profile_name", *_REVISION, "CASCADE"),
    # SET NULL would take the owner away too, so that with owners the repository does it.
    _Reference("compiled_table", "fk_compiled_table_profile_name", *_REVISION, "SET NULL"),
    _Reference(
        "compiled_table_file",
        "fk_compiled_table_file_digest",
        ("digest",),
        "compiled_table",
        ("digest",),
        "CASCADE",
    ),
    _Reference("active_table", "fk_active_table_profile_name", *_REVISION, "CASCADE"),
    _Reference(
        "active_table",
        "fk_active_table_digest",
        ("digest",),
        "compiled_table",
        ("digest",),
        "CASCADE",
    ),
)
_KEPT = (
    _Reference("further_trace", "fk_further_trace_fit_id", ("fit_id",), "fit", ("id",), "CASCADE"),
    _Reference("revision", "fk_revision_fit_id", ("fit_id",), "fit", ("id",)),
)

_FILTERS = ("profile_name", "profile_revision", "message_bytes", "strategy")
_SHORT = ("profile", "revision", "message", "strategy")
_INDEXES = {
    "ix_fit_trace_digest": ("fit", ("trace_digest",)),
    "ix_further_trace_trace_digest": ("further_trace", ("trace_digest",)),
    "ix_compiled_table_question": ("compiled_table", ("question_digest", "id")),
    "ix_compiled_table_profile": ("compiled_table", ("profile_name", "id")),
    "ix_active_table_digest": ("active_table", ("digest",)),
    "ix_hidden_answer_question": ("hidden_answer", ("question_digest", "id")),
    "ix_answer_question": ("answer", ("question_digest", "id")),
    **{
        f"ix_answer_{short}": (
            "answer",
            (first, "id", *(name for name in _FILTERS if name != first)),
        )
        for short, first in zip(_SHORT, _FILTERS, strict=True)
    },
}
_ANSWERS = ("answer", "hidden_answer")


def upgrade() -> None:
    """Give everything an owner, and add keys."""
    for name, (table, _) in _INDEXES.items():
        op.drop_index(name, table)
    if op.get_bind().dialect.name == "sqlite":
        _copy(is_owned=True)
    else:
        _alter(is_owned=True)
    for table in _ANSWERS:
        op.add_column(table, _owner())
    for name, (table, columns) in _INDEXES.items():
        op.create_index(name, table, ["owner", *columns])
    op.create_index("ix_answer_owner", "answer", ["owner", "id"])
    op.create_table(
        "api_key",
        sa.Column("id", KEY, nullable=False),
        sa.Column("owner", KEY, nullable=False),
        sa.Column("name", KEY, nullable=False),
        sa.Column("digest", KEY, nullable=False),
        sa.Column("scope", KEY, nullable=False),
        sa.Column("parent", KEY, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME, nullable=True),
        sa.Column("revoked_at", TIME, nullable=True),
        sa.Column("requests_per_s", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_api_key"),
        sa.CheckConstraint("scope IN ('read', 'write', 'admin')", name=op.f("ck_api_key_scope")),
        sa.ForeignKeyConstraint(
            ["parent"], ["api_key.id"], name="fk_api_key_parent", ondelete="CASCADE"
        ),
    )
    op.create_index("uq_api_key_digest", "api_key", ["digest"], unique=True)
    op.create_index("ix_api_key_owner", "api_key", ["owner", "id"])


def downgrade() -> None:
    """Forget keys, and all that is not of the first owner."""
    op.drop_table("api_key")
    for table in ("job", *_ANSWERS, *reversed(_PARENTS_FIRST)):
        op.execute(sa.text(f"DELETE FROM {table} WHERE owner <> '{FIRST}'"))
    op.drop_index("ix_answer_owner", "answer")
    for name, (table, _) in _INDEXES.items():
        op.drop_index(name, table)
    if op.get_bind().dialect.name == "sqlite":
        _copy(is_owned=False)
    else:
        _alter(is_owned=False)
    for table in _ANSWERS:
        op.drop_column(table, "owner")
    for name, (table, columns) in _INDEXES.items():
        op.create_index(name, table, list(columns))


# --- in place -------------------------------------------------------------------------------------


def _alter(*, is_owned: bool) -> None:
    for one in _OWNED:
        op.drop_constraint(one.name, one.table, type_="foreignkey")
    for table in _OWNED_KEYS:
        op.drop_constraint(f"pk_{table}", table, type_="primary")
    for table in _PARENTS_FIRST:
        if is_owned:
            op.add_column(table, _owner())
        else:
            op.drop_column(table, "owner")
    for table in _OWNED_KEYS:
        op.create_primary_key(f"pk_{table}", table, _key_of(table, is_owned=is_owned))
    for one in _OWNED:
        found = _constraint(one, is_owned=is_owned)
        op.create_foreign_key(
            one.name,
            one.table,
            one.target,
            list(found.column_keys),
            [element.target_fullname.partition(".")[2] for element in found.elements],
            ondelete=found.ondelete,
        )


# --- in copies ------------------------------------------------------------------------------------


def _copy(*, is_owned: bool) -> None:
    connection, references = op.get_bind(), [*_OWNED, *_KEPT]
    for table in _PARENTS_FIRST:
        old = sa.Table(table, sa.MetaData(), autoload_with=connection)
        names = [column.name for column in old.columns if column.name != "owner"]
        columns: list[Any] = [
            sa.Column(name, old.columns[name].type, nullable=old.columns[name].nullable)
            for name in names
        ]
        op.create_table(
            _copy_of(table),
            *columns,
            *([_owner()] if is_owned else []),
            sa.PrimaryKeyConstraint(*_key_of(table, is_owned=is_owned), name=f"pk_{table}"),
            *(
                _constraint(one, is_owned=is_owned and one in _OWNED, place=_copy_of)
                for one in references
                if one.table == table
            ),
        )
        listed = ", ".join(names)
        op.execute(f"INSERT INTO {_copy_of(table)} ({listed}) SELECT {listed} FROM {table}")
    for table in reversed(_PARENTS_FIRST):
        op.drop_table(table)
    for table in _PARENTS_FIRST:
        op.rename_table(_copy_of(table), table)
    op.execute(
        "CREATE TRIGGER revision_immutable BEFORE UPDATE ON revision "
        "BEGIN SELECT RAISE(ABORT, 'revisions are immutable'); END"
    )


def _copy_of(table: str) -> str:
    return f"copy_of_{table}"


# --- in parts -------------------------------------------------------------------------------------


def _owner() -> sa.Column[Any]:
    """Return the column; its default is there for what is stored, and for software of before."""
    return sa.Column("owner", KEY, nullable=False, server_default=FIRST)


def _key_of(table: str, *, is_owned: bool) -> list[str]:
    if table in _KEPT_KEYS:
        return list(_KEPT_KEYS[table])
    return [*(["owner"] if is_owned else []), *_OWNED_KEYS[table]]


def _constraint(
    one: _Reference, *, is_owned: bool, place: Any = lambda table: table
) -> sa.ForeignKeyConstraint:
    owner = ("owner",) if is_owned else ()
    on_delete = None if is_owned and one.on_delete == "SET NULL" else one.on_delete
    return sa.ForeignKeyConstraint(
        [*owner, *one.columns],
        [f"{place(one.target)}.{name}" for name in (*owner, *one.targets)],
        name=one.name,
        ondelete=on_delete,
    )
