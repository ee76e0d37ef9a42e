"""What the form asks: the files of all stages, pasted or stored, and how they are fitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from app.errors import kind_of
from app.questions.fits import utf8
from app.questions.measured_stages import MeasuredStage, ReadableWork, measured_stage
from app.questions.source import ReadFiles, Stored
from app.questions.traces import LoadedTrace
from app.text.choices import expected_one_of
from app.verbs.compose.page.form import CHOICES, ComposeForm, MeasuredRow, Unread
from contract.limits import MAX_NAME_LENGTH
from domain.errors import InvalidInput, SluiceError
from domain.fit import ComposedStage, FitMethod, FitOptions, FitShape
from domain.measurement import TraceKind
from domain.profile import ProfileReference
from domain.trace_formats import UnreadableRows, UnrecognisedTrace
from models.records import FitRequest

if TYPE_CHECKING:
    from models.session import Store


class RowMistakes(Exception):
    """Rows that are no stages; what is wrong, as ComposeForm has it."""

    def __init__(self, mistakes: Mapping[str, str], unread: Mapping[str, Unread]) -> None:
        super().__init__("rows hold mistakes")
        self.mistakes, self.unread = mistakes, unread


def composition(
    store: Store, form: ComposeForm, files: ReadFiles
) -> tuple[list[LoadedTrace], FitRequest]:
    """Return the files of all stages and how to fit them. Raises RowMistakes, InvalidInput, and
    ReadElsewhere where a worker has to look at a file first.
    """
    if not form.filled:
        raise RowMistakes({"": "expected the measurements of one stage at least"}, {})
    stages, traces, kinds, excluded = [], list[LoadedTrace](), list[TraceKind | None](), []
    mistakes, unread = dict[str, str](), dict[str, Unread]()
    for place, row in form.filled:
        mistakes |= {f"{name}-{place}": words for name, words in _wrong_names(row)}
        try:
            found = _measured(store, row, files)
        except SluiceError as refusal:
            if kind_of(refusal.code).status >= 500:
                raise
            mistakes[f"{row.source}-{place}"] = refusal.detail
            if isinstance(refusal, UnreadableRows | UnrecognisedTrace):
                unread[f"{row.source}-{place}"] = refusal
            continue
        if not mistakes:
            step, processor = row.step or found.step, row.processor or None
            count, columns, choice = len(found.traces), found.columns, found.choice
            stages.append(ComposedStage(row.name, count, step, processor, columns, choice))
            traces += found.traces
            kinds += found.kinds
            excluded += [replace(sample, stage=row.name) for sample in found.excluded]
    names = [row.name for _, row in form.filled]
    for place, row in form.filled:
        if row.name and names.count(row.name) > 1:
            mistakes.setdefault(f"name-{place}", "another stage has this name")
    mistakes |= dict(_wrong_choices(form))
    if mistakes:
        raise RowMistakes(mistakes, unread)
    options = FitOptions(
        FitMethod(form.method),
        FitShape(form.shape),
        excluded=tuple(excluded),
        composed=tuple(stages),
    )
    return traces, FitRequest(options, kinds=tuple(kinds))


def _wrong_names(row: MeasuredRow) -> Iterator[tuple[str, str]]:
    """Yield fields of a row that hold no name, and what is wrong with them."""
    if not row.name:
        yield "name", "expected a name of the stage"
    for name in ("name", "step", "processor"):
        if len(getattr(row, name)) > MAX_NAME_LENGTH:
            yield name, f"expected at most {MAX_NAME_LENGTH} characters"


def _wrong_choices(form: ComposeForm) -> Iterator[tuple[str, str]]:
    """Yield which choices are none that is offered, and what is."""
    for name in CHOICES:
        offered = [value for value, _ in form.words[name].choices]
        if (chosen := getattr(form, name)) not in offered:
            yield name, expected_one_of(offered, chosen)


def _measured(store: Store, row: MeasuredRow, files: ReadFiles) -> MeasuredStage:
    """Return the files of a row. Raises InvalidInput, NotFound and UnreadableTrace."""
    if not row.trace.strip() and not row.stored:
        raise InvalidInput("expected measurements: paste or drop a file, or name a stored stage")
    if row.trace.strip() and row.stored:
        raise InvalidInput("expected either measurements or a stored stage, not both")
    if row.stored:
        reference, slash, name = row.stored.partition("/")
        if not slash or not name:
            raise InvalidInput("expected a stored stage as profile/stage, such as local-copy/copy")
        return measured_stage(store, ProfileReference.parse(reference), name)
    trace = LoadedTrace.of(utf8(row.trace))
    # So that a file that is no measurement is said at its row.
    if (refusal := Stored.of_store(store, files).read(ReadableWork(trace.content()))) is not None:
        raise refusal
    return MeasuredStage((trace,), (None,))


def row_of(form: ComposeForm, refusal: SluiceError) -> str:
    """Return the field of the row that a fit refuses, "" for none.

    Its detail begins with the stage's name, or with those of the stages of one processor.
    """
    named = [
        (len(row.name), f"{row.source}-{place}")
        for place, row in form.filled
        if refusal.detail.startswith(f"stage {row.name}: ")
    ] or [
        (len(row.name), f"processor-{place}")
        for place, row in form.filled
        if row.processor and refusal.detail.startswith(f"{row.name} and ")
    ]
    return max(named)[1] if named else ""
