"""Notices: what a user must see beside an answer."""

from __future__ import annotations

from .declare import Output, output, sent


@output
class NoticeOut(Output):
    """Something a user must see: a stable code, a sentence, the one stage it is about if it is.

    Answers of earlier versions have no `stage` and no `values`.
    """

    code: str = sent("which kind of notice it is; stable")
    detail: str = sent("what to beware of, in a sentence")
    stage: str | None = sent(
        "the name of the stage that it is about; null: of none alone", default=None
    )
    values: dict[str, float | str] = sent(
        "the numbers and words of the sentence, by name", default_factory=dict
    )
