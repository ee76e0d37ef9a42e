"""Operations for tests of jobs: their request says what they do. They can be pickled."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from app.execution.engine import Pool
from app.operations.operation import (
    BestSoFar,
    OperationDefaults,
    OperationKind,
    Outcome,
    Report,
)
from app.questions.source import Stored
from domain.errors import Conflict, SluiceError, StrategyDeclined
from models.identifiers import new_id
from models.session import UnitOfWork
from tests.support.job_work import Last
from tests.support.records import an_answer

Result = dict[str, Any]


class Poison(dict[str, Any]):
    """A result that cannot be unpickled."""

    def __reduce__(self) -> Any:
        return json.loads, ("no JSON",)


class Crash(BaseException):
    """What an engine without processes takes for the end of one."""


@dataclass(frozen=True, slots=True)
class Scripted(OperationDefaults[Result]):
    """One that does as `behaviour` says, and keeps an answer of its number.

    answers; lasts `wall_s`; waits for the file `gate`, or improves twice and waits for it, or has a
    best result that poisons who reads it; crashes; refuses; has a result that cannot be kept.
    """

    number: int
    behaviour: str = "answers"
    wall_s: float = 0.0
    gate: str = ""
    named: str = "optimize"
    long: bool = False

    @property
    def kind(self) -> OperationKind:
        return OperationKind(self.named)

    @property
    def noun(self) -> str:
        return "work"

    @property
    def pool(self) -> Pool:
        return Pool.LONG if self.long else Pool.SOLVE

    @property
    def time_s(self) -> float:
        return 60.0

    @property
    def request(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @property
    def digest(self) -> str:
        return f"{self.behaviour} {self.number}"

    @property
    def work(self) -> Any:
        return Last(self.number, self.wall_s) if self.behaviour == "lasts" else self

    def run(self, report: Report, /) -> Result:
        match self.behaviour:
            case "waits":
                self._wait(report)
            case "improves":
                for latency_us in (4.0, 3.0):
                    report.best({"number": self.number, "latency_us": latency_us})
                self._wait(report)
            case "poisons":
                report.best(Poison())
                self._wait(report)
            case "crashes":
                raise Crash
            case "refuses":
                raise StrategyDeclined("it will not")
        return {"number": self.number, "latency_us": 2.0}

    def cut_off(self, best: Result, why: SluiceError) -> Result:
        return {**best, "why": why.code}

    def best_so_far(self, result: Result) -> BestSoFar:
        return BestSoFar(json.dumps(result).encode(), result["latency_us"], 1.0)

    def keep(self, unit: UnitOfWork, result: Result) -> Outcome:
        if self.behaviour == "cannot be kept":
            raise Conflict("what it was asked for is gone")
        answer = an_answer(id=new_id(), message_bytes=self.number, body=json.dumps(result).encode())
        unit.answers.add(answer)
        return Outcome(answer.body, answer_id=answer.id)

    def _wait(self, report: Report) -> None:
        gate = Path(self.gate)
        while not gate.exists():
            report.steps(1, 2)
            time.sleep(0.005)


@dataclass(frozen=True, slots=True)
class Letter(Scripted):
    """A part."""

    def run(self, report: Report, /) -> Result:
        if self.behaviour == "waits" and self.number:
            self._wait(report)
        return {"letter": chr(97 + self.number), "latency_us": 1.0}


@dataclass(frozen=True, slots=True)
class Joined(Scripted):
    """All parts put together: at once, or where it `joins` in a worker."""

    word: str = ""

    def run_here(self) -> Result | None:
        return None if self.behaviour == "joins" else self._result

    def run(self, report: Report, /) -> Result:
        self._wait(report)
        return self._result

    @property
    def _result(self) -> Result:
        return {"word": self.word, "latency_us": 1.0}


@dataclass(frozen=True, slots=True)
class Word(Scripted):
    """One of `number` parts."""

    @property
    def digest(self) -> str:
        return f"word {Scripted.digest.fget(self)}"  # type: ignore[attr-defined]

    def run(self, report: Report, /) -> Result:
        return self.join([part.run(report) for part in self.split()])._result

    def split(self) -> Sequence[Letter]:
        return [Letter(number, self.behaviour, gate=self.gate) for number in range(self.number)]

    def join(self, results: Sequence[Result]) -> Joined:
        word = "".join(one["letter"] for one in results)
        return Joined(self.number, self.behaviour, gate=self.gate, word=word)


@dataclass(frozen=True, slots=True)
class AlreadyStored(Scripted):
    """One whose result is at hand already."""

    def stored(self, unit: UnitOfWork) -> Outcome:
        return Outcome(b'{"kept": true}')


_MAKERS = {"compare": Word, "table": AlreadyStored}


def prepare(kind: str, request: bytes, stored: Stored) -> Scripted:
    """The operation of a job's request."""
    return _MAKERS.get(kind, Scripted)(**json.loads(request))
