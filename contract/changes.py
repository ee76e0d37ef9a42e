"""Who changed what, and when."""

from __future__ import annotations

from .declare import Output, output, sent


@output
class ChangeOut(Output):
    """One change: `made_by` is the name of a key, or what else acted, empty where nobody is asked
    who he is; `before` and `after` are a revision, a digest or a state.
    """

    id: str = sent("the change's identifier")
    created_at: str = sent("when it was made, RFC 3339 in UTC")
    owner: str = sent("whose it is that was changed")
    made_by: str = sent(
        "the name of the key, or what else acted; empty where nobody is asked who he is"
    )
    key_id: str | None = sent("the key's identifier; null: no key was used")
    request: str | None = sent("the identifier of the request; null: there was none")
    action: str = sent("what was done")
    subject: str = sent("what was changed: a profile's name, or an identifier")
    before: str | None = sent("the revision, digest or state before; null: there was none")
    after: str | None = sent("the revision, digest or state after; null: there is none")


@output
class ChangesOut(Output):
    """A page of an owner's changes, the newest first; `next_cursor` is null at the end."""

    items: tuple[ChangeOut, ...] = sent("the changes, the newest first")
    next_cursor: str | None = sent("the `cursor` of the next page; null: this is the last one")
