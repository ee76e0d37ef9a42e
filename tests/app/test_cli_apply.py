"""sluice apply, by main(argv), over programs whose times are made up."""

from __future__ import annotations

import json
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import nan
from pathlib import Path
from random import Random
from typing import Any

import pytest

from app.cli import main
from domain.errors import NotMeasurable
from exports.targets.registry import TARGETS
from measuring import trials
from measuring.trials import Installed, Start, Times, TrialPlan

Install = Callable[..., None]
HERE = "Open MPI v4.1.4"
MCA = "coll_tuned_use_dynamic_rules = 1\nbtl_vader_max_send_size = 65536\n"
RULES = """\
# head
1  # collectives
11  # reduce
1  # communicator sizes
0  # and every greater one
4  # rules: message bytes, algorithm, fan, fragment bytes
0 0 0 0
4097 6 0 4096
65537 6 0 8192
1048577 6 0 65536
"""


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Install:
    """Have the programs of a library take so many times as long with a setting."""
    monkeypatch.chdir(tmp_path)

    def install(
        factor: Callable[[str, int, Mapping[str, str]], float],
        *,
        library: str = HERE,
        failure: str = "",
    ) -> None:
        random = Random(5)

        def times(plan: TrialPlan) -> Start:
            def start(environment: Mapping[str, str]) -> Times:
                if environment and failure:
                    raise NotMeasurable(failure)
                return {
                    (program, size): 10.0
                    * random.lognormvariate(0.0, 0.01)
                    * (factor(program, size, environment) if environment else 1.0)
                    for program in plan.programs
                    for size in plan.sizes
                }

            return start

        @contextmanager
        def programs(*given: Any) -> Iterator[Installed]:
            yield Installed(library, trials.version_in(library), times(given[-1]))

        monkeypatch.setattr(trials, "mpi_programs", programs)
        monkeypatch.setattr(trials, "ucx_programs", programs)

    return install


def written(name: str, text: str) -> str:
    """A file of this text, by its name."""
    Path(name).write_text(text, encoding="utf-8")
    return name


def check(target: str, config: str, *more: str) -> int:
    """The exit code."""
    return main(("apply", target, "--config", config, "--check", *more))


def test_a_gain_is_kept_where_it_takes_no_effect(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what was found in its first lines, beside nothing else."""
    install(lambda *_: 0.5)
    assert check("openmpi-mca", written("given.conf", "# mine\n" + MCA)) == 0
    text = Path("sluice-openmpi-mca.conf").read_text()
    assert text.startswith("# Measured over Open MPI v4.1.4: kept: faster at 28 of 28 programs")
    assert text.endswith("# mine\n" + MCA)
    assert sorted(path.name for path in Path().iterdir()) == [
        "given.conf",
        "sluice-openmpi-mca.conf",
    ]
    out = capsys.readouterr().out
    assert "trial 2, 30 pairs:" in out
    assert "allreduce" in out


@pytest.mark.parametrize(
    ("target", "text", "first", "rest"),
    [
        ("openmpi-mca", MCA, "# Measured over ", MCA),
        ("openmpi-mca", "\ufeff" + MCA, "# Measured over ", MCA),
        (
            "openmpi-rules",
            "rule-file-version-2\n" + RULES,
            "rule-file-version-2\n# Measured",
            RULES,
        ),
    ],
)
def test_what_is_kept_says_what_was_found(
    install: Install,
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    text: str,
    first: str,
    rest: str,
) -> None:
    """In its first lines, also where it has no comment; with what the environment has set."""
    monkeypatch.setenv("UCX_TLS", "posix,self\n# x")
    install(lambda *_: 0.5, library="Open MPI v5.0.7")
    assert check(target, written("given.conf", text), "--output", "kept") == 0
    kept = Path("kept").read_text()
    head = kept.removesuffix(rest).removeprefix("rule-file-version-2\n")
    assert kept.startswith(first)
    assert kept.endswith(rest)
    assert all(line.startswith("# ") for line in head.splitlines())
    said = " ".join(line.removeprefix("# ") for line in head.splitlines())
    assert "set in the environment: UCX_TLS=posix,self" in said
    assert "none is seen to be slower, 0 are undecided; confirmed, in trials of 30 and 30" in said


def test_what_the_environment_has_already_is_the_baseline_and_is_said(
    install: Install, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A gain over the user's own value is none over the library's."""
    monkeypatch.setenv("OMPI_MCA_btl_vader_max_send_size", "4096")
    install(lambda *_: 0.5)
    assert check("openmpi-mca", written("given.conf", MCA)) == 0
    said = "; before, not the library's default but OMPI_MCA_btl_vader_max_send_size=4096"
    assert said in " ".join(capsys.readouterr().out.split())
    head = Path("sluice-openmpi-mca.conf").read_text().replace("\n# ", " ")
    assert said in head
    assert "set in the environment" not in head


def test_the_setting_is_in_force_for_the_programs_alone(install: Install) -> None:
    """By variables; a file of parameters would replace those that are in use."""
    seen: list[Mapping[str, str]] = []

    def note(program: str, size: int, environment: Mapping[str, str]) -> float:
        seen.append(environment)
        return 1.0

    install(note)
    assert check("openmpi-mca", written("given.conf", MCA)) == 7
    assert seen[0] == {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_btl_vader_max_send_size": "65536",
    }


@pytest.mark.parametrize(
    ("factor", "reason"),
    [
        (1.0, "not kept: it is faster nowhere"),
        (1.5, "not kept: slower at 28 of 28 programs and sizes, most at"),
        (nan, "gives wrong data"),
    ],
)
def test_what_does_not_win_is_not_written(
    install: Install, capsys: pytest.CaptureFixture[str], factor: float, reason: str
) -> None:
    """And the exit code and the last sentence say so."""
    install(lambda *_: factor)
    assert check("openmpi-mca", written("given.conf", MCA), "--json") == 7
    found = json.loads(capsys.readouterr().out)
    assert reason in found["reason"]
    assert (found["is_kept"], found["text"]) == (False, None)
    assert not Path("sluice-openmpi-mca.conf").exists()


def raised(number: signal.Signals) -> float:
    """1, once this process has got a signal and goes on."""
    signal.raise_signal(number)
    return 1.0


def test_a_signal_ends_it_as_ctrl_c_does(
    install: Install, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing is left in the folder of temporary files; what is ignored stays ignored."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        install(lambda *_: raised(signal.SIGHUP))
        assert check("openmpi-mca", written("given.conf", MCA)) == 7
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    install(lambda *_: raised(signal.SIGTERM))
    assert check("openmpi-mca", "given.conf") == 130
    assert not list(folder.iterdir())
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_programs_that_do_not_end_are_a_verdict(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what they said."""
    install(lambda *_: 1.0, failure="trial: it ended with 6")
    assert check("openmpi-mca", written("given.conf", MCA)) == 7
    assert "it ended with 6" in capsys.readouterr().out


def test_rules_that_lose_are_left_to_the_library(install: Install) -> None:
    """Those that win are kept, in a file that the trial read."""

    def factor(program: str, size: int, environment: Mapping[str, str]) -> float:
        rules = Path(environment["OMPI_MCA_coll_tuned_dynamic_rules_filename"]).read_text()
        if program != "reduce" or size < 16384:
            return 1.0
        if size >= 1 << 20:
            return 0.7
        return 1.4 if "65537 6 0 8192" in rules else 1.0

    install(factor)
    assert check("openmpi-rules", written("reduce.rules", RULES)) == 0
    kept = Path("sluice-openmpi-rules.conf").read_text()
    assert kept.splitlines()[-4:] == [
        "3  # rules: message bytes, algorithm, fan, fragment bytes",
        "0 0 0 0",
        "1048576 6 0 8192",
        "1048577 6 0 65536",
    ]


def test_rules_that_all_lose_are_none(install: Install) -> None:
    """There is nothing left to try."""
    install(lambda *_: 1.4)
    assert check("openmpi-rules", written("reduce.rules", RULES)) == 7


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("apply", "ucx", "--config", "x"), 2, "--check"),
        (("apply", "nonesuch", "--config", "x", "--check"), 2, "expected a target out of"),
        (("apply", "c-header", "--config", "x", "--check"), 3, "those that can be checked: ucx"),
        (("apply", "ucx", "--check"), 2, "expected a SOURCE, or --config"),
        (("apply", "ucx", "--config", "none.conf", "--check"), 4, "there is no file"),
        (("apply", "ucx", "--config", "x", "--check", "--output", "ucx.conf"), 2, "by accident"),
        (("apply", "ucx", "--config", "x", "--check", "--output", "link"), 2, "by accident"),
        (("apply", "ucx", "--config", "x", "--check", "--pairs", "2"), 2, "pairs"),
        (("apply", "ucx", "--config", "x", "--check", "--option", "form=shell"), 2, "a SOURCE has"),
        (("apply", "ucx", "--config", "x", "--check", "--max-message", "1MiB"), 2, "a SOURCE has"),
        (("apply", "ucx", "--config", "x", "--check", "--launcher", "mpirun"), 2, "only an MPI"),
        (("apply", "ucx", "--config", "x", "--check", "--ranks", "4"), 2, "only an MPI"),
        (("apply", "openmpi-mca", "--config", "x", "--check", "--ranks", "1"), 2, "2 to 64 ranks"),
        (("apply", "ucx-shm", "--config", "big", "--check"), 2, "at most 65472 bytes"),
        (("apply", "ucx", "--config", "two", "--check"), 2, "several sections"),
        (("apply", "openmpi-rules", "--config", "x", "--check"), 2, "expected numbers"),
    ],
)
def test_what_cannot_be_done_is_refused(
    install: Install,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    code: int,
    words: str,
) -> None:
    """In one line, before any program runs."""
    install(lambda *_: 1.0)
    written("x", "UCX_RNDV_FRAG_SIZE=host:65536\n")
    written("big", "UCX_POSIX_SEG_SIZE=131072\n")
    written("two", "[a]\nUCX_RNDV_FRAG_SIZE=host:65536\n[b]\nUCX_TLS=tcp\n")
    Path("link").symlink_to("ucx.conf")
    assert main(arguments) == code
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("target", "text", "library", "words"),
    [
        ("mpich", "MPIR_CVAR_IBCAST_RING_CHUNK_SIZE=8192\n", HERE, "a wrapper of MPICH"),
        (
            "mpich",
            "MPIR_CVAR_BCAST_TREE_PIPELINE_CHUNK_SIZE=8192\n",
            "MPICH Version:\t4.0.2",
            "4.1 and later read this setting",
        ),
        ("ucx", "UCX_RNDV_FRAG_SIZE=host:65536\n", "UCX, version 1.11.0", "1.12 and later"),
        ("openmpi-rules", "rule-file-version-2\n" + RULES, HERE, "5.0.7 and later"),
        ("openmpi-mca", "coll_han_bcast_segsize = 65536\n", "Open MPI v4.0.9", "4.1 and later"),
    ],
)
def test_the_library_has_to_read_the_setting(
    install: Install,
    capsys: pytest.CaptureFixture[str],
    target: str,
    text: str,
    library: str,
    words: str,
) -> None:
    """What is installed is named."""
    install(lambda *_: 0.5, library=library)
    assert check(target, written("given", text)) == 2
    assert words in capsys.readouterr().err


def test_a_source_is_exported_first(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    """As export does, with its options and its warnings."""
    install(lambda *_: 0.5, library="UCX, version 1.13.1")
    source = str(Path(__file__).parents[2] / "examples" / "myrinet-gam.json")
    asked = ("--min-message", "128KiB", "--max-message", "256KiB", "--option", "form=shell")
    assert main(("apply", "ucx-shm", source, "--check", *asked)) == 0
    assert "\nexport UCX_POSIX_SEG_SIZE=" in Path("sluice-ucx-shm.sh").read_text()
    assert "kept in sluice-ucx-shm.sh" in capsys.readouterr().err


def test_what_is_kept_is_no_longer_said_to_be_unknown(install: Install) -> None:
    """But by the model alone, which an export's head is about."""
    install(lambda *_: 0.5)
    source = str(Path(__file__).parents[2] / "examples" / "myrinet-gam.json")
    asked = ("--option", "collective=reduce", "--option", "algorithm=in-order_binary")
    sizes = ("--min-message", "128KiB", "--max-message", "256KiB")
    assert main(("apply", "openmpi-rules", source, "--check", *asked, *sizes)) == 0
    text = Path("sluice-openmpi-rules.conf").read_text()
    assert "NOT KNOWN TO BE BETTER" not in text
    assert "# by the model alone not known to be better than the library's default" in text


def test_every_effect_is_of_programs_that_there_are() -> None:
    """And of a library that names itself so."""
    for target in TARGETS:
        if target.effect is not None:
            known = trials.UCX_PROGRAMS if "ucx" in target.name else trials.MPI_PROGRAMS
            assert set(target.effect.programs) <= set(known)
