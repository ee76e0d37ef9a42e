"""What an answer warns of first: what is not known of how sure it is, and what was measured."""

from __future__ import annotations

from collections.abc import Iterator

from app.questions.optimize import Answer
from app.text.measured_times import mean_times
from domain.fit import BEYOND_MEASURED, beyond_measured, cut_sizes
from domain.solution import Notice
from domain.uncertainty import ANSWER
from domain.verification import said_of

_ERRORS_NOT_KNOWN = Notice(
    "errors_not_known",
    "how sure this answer is cannot be told: the errors of its fitted costs are not known. Measure "
    "more sizes of each stage, and fit them again, or give the deviation of the costs (relative)",
)
_ANSWER_NOT_IN_DRAWS = Notice(
    "answer_not_in_draws",
    "how sure this cut is was not computed: it has too many fragments of different sizes to be "
    "priced in every draw of the costs. What is said is of the cut that is advised instead",
)
_ANSWER_NOT_MEASURED = Notice(
    "answer_not_in_draws",
    "how sure this cut is was not computed: its fragments were not measured. What is said is of "
    "the cut that is advised instead",
)
_NOTHING_IN_DRAWS = Notice(
    "no_repeated_size",
    "how sure this answer is was not computed: no size can be repeated within the limits, so that "
    "there is nothing to compare it with",
)


def notices_of(answer: Answer) -> tuple[Notice, ...]:
    """Return what transfers said of the profile, sizes that were not measured, and what is not
    known of the answer's errors.
    """
    return (*_known(answer), *_unsure(answer))


def _known(answer: Answer) -> Iterator[Notice]:
    """Yield what transfers said of the profile, before all else, and sizes not measured."""
    solution, fit = answer.solution, answer.prepared.fit
    for against in (answer.contradicts, answer.prepared.verification):
        if said := said_of(against):
            yield said
    cuts = solution.levels or (solution.schedule.fragment_bytes,)
    sizes = {size for cut in cuts for size in cut_sizes(cut)}
    if beyond := beyond_measured(sizes, fit.measured_bytes if fit else None):
        yield beyond


def _unsure(answer: Answer) -> tuple[Notice, ...]:
    """What is said where costs may be wrong and the answer cannot say how much that matters."""
    if answer.prepared.uncertain is None:
        return (_ERRORS_NOT_KNOWN,) if answer.prepared.fit is not None else ()
    if answer.uncertainty is None:
        return (_NOTHING_IN_DRAWS,)
    means = tuple(mean_times(answer.prepared.uncertain.model, answer.uncertainty))
    if answer.uncertainty.subject.name == ANSWER:
        return means
    is_long = not any(notice.code == BEYOND_MEASURED for notice in _known(answer))
    return (_ANSWER_NOT_IN_DRAWS if is_long else _ANSWER_NOT_MEASURED, *means)
