"""The form of a layer's costs: declared words, and a document in place of a published layer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

import orjson

from app.errors import field_problems
from app.schemas.base import dump_json, parse_json, refuse_doubled_keys
from app.schemas.layer import MAX_DOCUMENT_BYTES, document_in
from app.ui.forms import RequestForm
from app.ui.options import command_line
from contract.declare import Asked
from contract.layer_costs import LayerCostsIn
from domain.errors import InvalidInput, SluiceError

FORM = RequestForm(LayerCostsIn, "layer", optional=("bytes",))
DOCUMENT = Asked(
    "a layer as a document, in place of a published one",
    page="document",
    label="Layer as JSON, as the file of sluice model layer count",
    is_long=True,
    file="layer.json",
    is_source=True,
    place=("layer",),
)
WORDS = {word.name: word for word in (*FORM.words, DOCUMENT)}
_USUAL = {name: word.begins_with or word.usual for name, word in WORDS.items()}
_RARER = ("packet_words", "cycles", "wire", "features", "mapping", "time_limit")


@dataclass(frozen=True, slots=True)
class LayerForm:
    """What is asked about a layer, as typed. `mistakes` is by field, "" for what fits none."""

    texts: Mapping[str, str] = field(default_factory=dict)
    mistakes: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, str]]) -> LayerForm:
        """Read what a form sent, or what an address has."""
        return cls({name: text.strip() for name, text in pairs if name in WORDS})

    def text(self, name: str) -> str:
        """Return one field."""
        return self.texts.get(name) or _USUAL[name]

    @property
    def shown_texts(self) -> dict[str, str]:
        """All fields, with what is usual where nothing was typed."""
        return {name: self.text(name) for name in WORDS}

    @property
    def unusual(self) -> dict[str, str]:
        """The fields that say something else than what is usual."""
        return {name: text for name, text in self.texts.items() if text not in ("", _USUAL[name])}

    @property
    def is_asked(self) -> bool:
        """Whether sizes of messages are given, so that there is something to compute."""
        return bool(self.text("bytes"))

    @property
    def is_tuned(self) -> bool:
        """Whether fragments are to be chosen anew, which takes a while."""
        return bool(self.text("tune"))

    @property
    def has_more(self) -> bool:
        """Whether any of the rarer choices was made, so that they are shown open."""
        return any(name in self.unusual or name in self.mistakes for name in _RARER)

    def query(self) -> str:
        """Return the same as the query of an address; what is usual is left out."""
        return urlencode(self.unusual)

    def command(self) -> str:
        """Return the command that asks the same; a document is in the file of DOCUMENT."""
        layer = "document" if self.text("document") else "layer"
        left_out = {"layer", "document"} - {layer}
        words = [word for name, word in WORDS.items() if name not in left_out]
        return command_line(FORM.command, words, {**self.unusual, layer: self.text(layer)})

    def asked(self) -> tuple[LayerCostsIn | None, LayerForm]:
        """Return the request, or None and the form with its mistakes."""
        body, mistakes = FORM.document(self.shown_texts)
        if not self.is_asked:
            mistakes["bytes"] = "expected sizes of messages, as 64, 4 KiB"
        if self.text("document"):
            try:
                body["layer"] = _layer_in(self.text("document"))
            except SluiceError as refusal:
                mistakes["document"] = refusal.detail
        if mistakes:
            return None, replace(self, mistakes=mistakes)
        try:
            return parse_json(LayerCostsIn, dump_json(body)), self
        except SluiceError as refusal:
            return None, self.refused(refusal)

    def refused(self, refusal: SluiceError) -> LayerForm:
        """Return the form with what was refused, at its field."""
        found: dict[str, str] = {}
        for problem in field_problems(refusal):
            inside = problem.pointer.removeprefix("/layer").strip("/")
            is_inside = inside and problem.pointer.startswith("/layer/")
            said = f"{inside}: {problem.detail}" if is_inside else problem.detail
            found.setdefault(self._place(problem.pointer), said)
        if not found:
            at = (refusal.field or "").replace(".", "/")
            found[self._place(f"/{at}")] = refusal.detail
        return replace(self, mistakes=found)

    def _place(self, pointer: str) -> str:
        """Return the field that a pointer is about, "" for none."""
        place = FORM.place(pointer)
        return "document" if place == "layer" and self.text("document") else place


def _layer_in(text: str) -> dict[str, Any]:
    """Return the layer of a text. Raises InvalidInput, and InvalidFields for a doubled key."""
    if len(text) > MAX_DOCUMENT_BYTES:
        raise InvalidInput(f"expected at most {MAX_DOCUMENT_BYTES} characters")
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        document = None
    if not isinstance(document, dict):
        raise InvalidInput("expected a layer's document, an object in JSON")
    refuse_doubled_keys(text.encode())
    return document_in(document)
