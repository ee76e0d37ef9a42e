"""What the repository of retention does. Run on each database."""

from __future__ import annotations

from models.records import EVERYBODY, Keep
from models.repositories.retention import rules_of
from models.session import Store


class RetentionContract:
    """Rules are an owner's or everybody's, and the last ones hold."""

    def test_rules_come_back_as_they_were_set(self, store: Store) -> None:
        """Ages, counts, both or none of a kind; and none of any, which keeps everything."""
        rules = {"jobs": Keep(3600.5, 10), "answers": Keep(None, 0), "keys": Keep(1.0)}
        with store.unit_of_work() as work:
            work.retention.set(EVERYBODY, {"changes": Keep(1.0)})
            work.retention.set(EVERYBODY, rules)
            work.retention.set("a", {})
        with store.reading() as work:
            found = work.retention.all()
        assert found == {EVERYBODY: rules, "a": {}}
        assert rules_of("a", found) == {}
        assert rules_of("b", found) == rules
        assert rules_of("b", {}) == {}

    def test_who_has_none_of_his_own_keeps_what_all_do(self, store: Store) -> None:
        """Also once they are forgotten, of one who never had any too."""
        with store.unit_of_work() as work:
            work.retention.set("a", {"jobs": Keep(1.0)})
            work.retention.forget("a")
            work.retention.forget("b")
        with store.reading() as work:
            assert work.retention.all() == {}
