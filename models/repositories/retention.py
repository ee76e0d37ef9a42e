"""What is kept, as rows: of all owners, and of those that have rules of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from models.base import utc_now
from models.records import EVERYBODY, Keep
from models.repositories.statements import insert_or_find
from models.rows.retention import RetentionRow


class RetentionRepository:
    """Rules by owner; those of EVERYBODY hold for who has none."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def set(self, owner: str, keeps: Mapping[str, Keep]) -> None:
        """Keep so much of each kind from now on, and everything of kinds that are not named."""
        said = {kind: {"age_s": keep.age_s, "count": keep.count} for kind, keep in keeps.items()}
        rules, now = json.dumps(said), utc_now()
        row = insert_or_find(
            self._session, RetentionRow, {"owner": owner, "rules": rules, "set_at": now}
        )
        row.rules, row.set_at = rules, now
        self._session.flush()

    def forget(self, owner: str) -> None:
        """Have an owner keep what all do."""
        self._session.execute(delete(RetentionRow).where(RetentionRow.owner == owner))

    def all(self) -> dict[str, Mapping[str, Keep]]:
        """Return what is kept, by owner."""
        found = self._session.execute(select(RetentionRow.owner, RetentionRow.rules))
        return {owner: _keeps(rules) for owner, rules in found}


def rules_of(owner: str, rules: Mapping[str, Mapping[str, Keep]]) -> Mapping[str, Keep]:
    """Return what an owner keeps: by his own rules, or else by everybody's."""
    return rules.get(owner, rules.get(EVERYBODY, {}))


def _keeps(rules: str) -> dict[str, Keep]:
    return {kind: Keep(keep["age_s"], keep["count"]) for kind, keep in json.loads(rules).items()}
