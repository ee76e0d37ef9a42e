"""The course of every page with a form of declared words: texts, request, operation, view."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias, TypeVar

from fastapi import Request, Response

from app.http.dependencies import client_of, service_of
from app.questions.profiles import list_profiles
from app.ui.forms import RequestForm
from app.ui.pages import page
from contract.declare import Input
from domain.errors import SluiceError
from models.session import Store

T = TypeVar("T", bound=Input)
View: TypeAlias = Callable[[T, bytes, Mapping[str, str]], Mapping[str, Any]]


async def asked_page(
    request: Request,
    form: RequestForm[T],
    operation: Callable[..., Any],
    view: View[T],
    template: str,
    *,
    section: str = "Models",
) -> Response:
    """Show the form; where it is filled in, what the operation found, or what is wrong.

    `view` is given the request, the answer's document, and the texts of the address.
    """
    texts, is_asked = form.texts(request.query_params)
    service = service_of(request)
    names = await service.call(lambda: _profile_names(service.context.store))
    asked, mistakes = form.asked(texts)
    shown: Mapping[str, Any] | None = None
    if is_asked and asked is not None:
        make = partial(operation, asked, settings=service.context.settings)
        try:
            performed = await service.perform(make, client_of(request))
        except SluiceError as refusal:
            mistakes = form.mistakes(refusal)
        else:
            given, found = {**request.query_params, **texts}, asked
            shown = await service.call(lambda: view(found, performed.outcome.document, given))
            shown = {"command": form.shell(texts), **shown}
    return page(
        request,
        template,
        section=section,
        status=422 if is_asked and mistakes else 200,
        words={word.name: word for word in form.words},
        texts=texts,
        mistakes=mistakes if is_asked else {},
        names=names,
        view=shown,
    )


def _profile_names(store: Store) -> list[str]:
    return [profile.name for profile in list_profiles(store, limit=200).profiles]


def embedded(picture: bytes) -> str:
    """Return a picture as an address that holds it."""
    return f"data:image/svg+xml;base64,{base64.b64encode(picture).decode()}"
