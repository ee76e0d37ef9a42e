"""Settings against none: what intervals say, what is kept, and real programs over two MPIs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import nan
from pathlib import Path
from random import Random

import pytest

from domain.errors import InvalidInput, NotMeasurable
from measuring.mpi import Mpi
from measuring.trials import (
    Installed,
    Outcome,
    Times,
    Trial,
    TrialPlan,
    check,
    compare,
    mpi_programs,
    version_in,
)
from tests.measuring.test_libraries import installed

PLAN = TrialPlan(("bcast", "reduce"), (1024, 65536), pairs=12)
Factor = Callable[[str, int], float]


def machine(factor: Factor, *, noise: float = 0.02, seed: int = 1) -> Callable[..., Times]:
    """Programs on a machine whose speed drifts, and that a setting makes so many times as long."""
    random, drift = Random(seed), 1.0

    def start(environment: Mapping[str, str]) -> Times:
        nonlocal drift
        drift = min(4.0, max(0.5, drift * random.lognormvariate(0.0, noise)))
        return {
            (program, size): 10.0
            * drift
            * random.lognormvariate(0.0, noise)
            * (factor(program, size) if environment else 1.0)
            for program in PLAN.programs
            for size in PLAN.sizes
        }

    return start


def in_force(text: str) -> dict[str, str]:
    """A variable with the text."""
    return {"SETTING": text}


class TestIntervals:
    """Of each program and size, over pairs."""

    def test_what_differs_is_seen_and_what_does_not_is_not(self) -> None:
        """A drift of the machine is none of the setting's."""
        found = compare(PLAN, machine(lambda _, size: 0.8 if size > 1024 else 1.0), in_force("x"))
        outcomes = {(one.program, one.message_bytes): one.outcome for one in found.compared}
        assert outcomes["bcast", 65536] is outcomes["reduce", 65536] is Outcome.FASTER
        assert outcomes["bcast", 1024] in (Outcome.SAME, Outcome.UNDECIDED)
        assert found.is_gain
        assert found.pairs == 12

    def test_nothing_is_seen_where_nothing_differs(self) -> None:
        """In at most one trial of twenty: of forty, more than seven would be 1 in 10^3."""
        trials = [
            compare(PLAN, machine(lambda *_: 1.0, noise=0.2, seed=seed), in_force("x"))
            for seed in range(40)
        ]
        seen = [one for one in trials if one.of(Outcome.FASTER, Outcome.SLOWER)]
        assert len(seen) <= 7
        assert not any(one.of(Outcome.WRONG) for one in trials)

    def test_a_few_pairs_decide_nothing(self) -> None:
        """The number that is needed grows with what is compared."""
        assert PLAN.min_pairs == 8
        with pytest.raises(InvalidInput, match="8 to 1000 pairs"):
            TrialPlan(PLAN.programs, PLAN.sizes, pairs=7)
        hasty = TrialPlan(PLAN.programs, PLAN.sizes, time_limit_s=1e-9)
        with pytest.raises(NotMeasurable, match="8 are needed"):
            compare(hasty, machine(lambda *_: 1.0), in_force("x"))

    @pytest.mark.parametrize(
        "change",
        [
            {"programs": ()},
            {"sizes": (6,)},
            {"sizes": (0,)},
            {"sizes": tuple(range(4, 4000, 4))},
            {"time_limit_s": 0.0},
            {"pairs": 1001},
        ],
    )
    def test_a_plan_that_is_none_is_refused(self, change: dict[str, object]) -> None:
        """Naming what is wrong."""
        given: dict[str, object] = {"programs": PLAN.programs, "sizes": PLAN.sizes, **change}
        with pytest.raises(InvalidInput):
            TrialPlan(**given)  # type: ignore[arg-type]


class TestWhatIsKept:
    """Faster somewhere, slower nowhere, twice."""

    def test_a_gain_is_kept(self) -> None:
        """After a second trial."""
        found = check(PLAN, machine(lambda *_: 0.7), "size=1", in_force)
        assert found.text == "size=1"
        assert len(found.trials) == 2

    @pytest.mark.parametrize("factor", [1.0, 1.3])
    def test_what_gains_nothing_is_not(self, factor: float) -> None:
        """Nor what is slower; one trial says so."""
        found = check(PLAN, machine(lambda *_: factor), "size=1", in_force)
        assert found.text is None
        assert len(found.trials) == 1

    def test_a_gain_does_not_pay_for_a_loss(self) -> None:
        """At another size."""
        found = check(
            PLAN, machine(lambda _, size: 0.5 if size > 1024 else 1.2), "size=1", in_force
        )
        assert found.text is None
        assert found.trials[0].of(Outcome.FASTER)

    def test_the_part_that_lost_is_left_out(self) -> None:
        """Where the setting has parts; what is left is tried anew, and confirmed."""
        texts: list[str] = []

        def start(environment: Mapping[str, str]) -> Times:
            text = environment.get("SETTING", "")
            slow = 1.3 if text == "all" else 1.0
            return {
                key: us * (slow if key[1] == 1024 else 0.6 if text else 1.0)
                for key, us in own({}).items()
            }

        def without(text: str, left: tuple[tuple[int, int | None], ...]) -> str | None:
            texts.append(text)
            assert left == ((0, 1024), (1024, 65536))
            return "rest"

        own = machine(lambda *_: 1.0)
        found = check(PLAN, start, "all", in_force, without)
        assert (found.text, texts, len(found.trials)) == ("rest", ["all"], 3)

    def test_a_gain_that_does_not_come_back_is_not_kept(self) -> None:
        """As of what ran in the first trial alone."""
        starts = 0
        quick, same = machine(lambda *_: 0.7), machine(lambda *_: 1.0)

        def start(environment: Mapping[str, str]) -> Times:
            nonlocal starts
            starts += 1
            return (quick if starts <= 25 else same)(environment)

        found = check(PLAN, start, "size=1", in_force)
        assert found.text is None
        assert [one.is_gain for one in found.trials] == [True, False]

    def test_wrong_data_are_never_kept(self) -> None:
        """However quick; the trial ends with them."""
        found = check(
            PLAN, machine(lambda program, _: nan if program == "reduce" else 0.1), "x", in_force
        )
        assert found.text is None
        assert found.trials[0].pairs == 1
        assert {one.program for one in found.trials[0].of(Outcome.WRONG)} == {"reduce"}

    def test_programs_that_fail_without_the_setting_are_an_error(self) -> None:
        """With it they are a verdict."""

        def start(environment: Mapping[str, str]) -> Times:
            if environment:
                raise NotMeasurable("it ended with 6")
            return machine(lambda *_: 1.0)({})

        found = check(PLAN, start, "x", in_force)
        assert (found.text, found.trials) == (None, (Trial((), 0, "it ended with 6"),))
        with pytest.raises(NotMeasurable, match="without the setting"):
            compare(PLAN, lambda _: {("bcast", 1024): nan}, in_force("x"))


@pytest.fixture(scope="module", params=["mpich", "openmpi"])
def programs(request: pytest.FixtureRequest) -> Iterator[Installed]:
    """A few programs over each MPI that is installed."""
    plan = TrialPlan(("ping-pong", "bcast", "reduce", "iallreduce"), (4, 65536))
    with mpi_programs(installed(request.param), plan) as found:
        yield found


class TestPrograms:
    """Two real ranks."""

    def test_each_answers_with_a_time(self, programs: Installed) -> None:
        """Of right data."""
        found = programs.start({})
        assert len(found) == 8
        assert all(0.0 < us < 1e7 for us in found.values())
        assert len(programs.version) == 3

    def test_variables_reach_the_ranks(self, programs: Installed) -> None:
        """A transport that there is not ends them, and nothing answers."""
        if "MPICH" in programs.library:
            broken = {"UCX_TLS": "none-such"}
        else:
            broken = {"OMPI_MCA_btl": "none-such", "OMPI_MCA_pml": "ob1"}
        with pytest.raises(NotMeasurable):
            programs.start(broken)

    def test_what_is_not_there_is_named(self) -> None:
        """The wrapper, and a program."""
        plan = TrialPlan(("bcast",), (4,))
        with (
            pytest.raises(InvalidInput, match="no-such-mpicc"),
            mpi_programs(Mpi("no-such-mpicc"), plan),
        ):
            pass
        unknown = TrialPlan(("gather",), (4,))
        with pytest.raises(InvalidInput, match="ping-pong"), mpi_programs(Mpi(), unknown):
            pass

    def test_what_does_not_compile_says_why(self, tmp_path: Path) -> None:
        """A wrapper that is no compiler of MPI."""
        wrapper = tmp_path / "mpicc.none"
        wrapper.write_text("#!/bin/sh\necho error: no mpi.h >&2\nexit 1\n")
        wrapper.chmod(0o755)
        mpi = Mpi(str(wrapper), "true")
        with (
            pytest.raises(InvalidInput, match=r"no mpi\.h"),
            mpi_programs(mpi, TrialPlan(("bcast",), (4,))),
        ):
            pass


def test_versions_are_numbers() -> None:
    """As libraries name them."""
    assert version_in("Open MPI v4.1.4, package") == (4, 1, 4)
    assert version_in("MPICH Version:\t4.0.2") == (4, 0, 2)
    assert version_in("none") == ()
