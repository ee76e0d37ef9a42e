"""What contract/fit.py declares, as the domain has it: how files are fitted, said in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.questions.fits import check_request
from app.schemas.fit_requests import fit_options_of, parse_excluded, parse_group
from contract.fit import FitQueryIn
from contract.fit_options import ExcludedSampleIn, StepGroupIn
from domain.measurement import TraceKind
from models.records import FitRequest


def asked_in_words(said: Mapping[str, Any]) -> FitQueryIn:
    """Return what is asked where a group is `name:combine:step,step` and a sample that is left out
    `bytes:µs:stage`. Raises InvalidInput.
    """
    groups = map(parse_group, said.get("groups", ()))
    samples = map(parse_excluded, said.get("excluded", ()))
    return FitQueryIn(
        **{
            **said,
            "groups": tuple(
                StepGroupIn(name=group.name, steps=[*group.steps], combine=group.combine.value)
                for group in groups
            ),
            "excluded": tuple(
                ExcludedSampleIn(
                    stage=sample.stage, message_bytes=sample.message_bytes, time_us=sample.time_us
                )
                for sample in samples
            ),
        }
    )


def fit_request(asked: FitQueryIn) -> FitRequest:
    """Return how the files of one fit are fitted; one kind, of all. Raises InvalidInput."""
    kind = None if asked.kind is None else TraceKind(asked.kind)
    request = FitRequest(fit_options_of(asked), asked.message_bytes, (kind,))
    check_request(request)
    return request
