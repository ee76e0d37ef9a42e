"""The kernels in C: the evaluator's bits, whatever the processor; clean of what sanitizers find."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from domain.errors import InvalidInput
from domain.pipeline import FitRange, Pipeline, Stage
from domain.schedule import latency_us
from solvers.exact.chain import Chain, ChainOptions, Iterate
from solvers.exact.interior_native import NativeMethod
from solvers.kernels import latencies_us
from solvers.kernels.native import FLAGS, FOLDER, Choice, asked, load_library, object_path, sources
from solvers.kernels.native_recurrence import NativeRecurrence
from solvers.line_problem import LineProblem
from tests.support.compiler import compiler, require_native_kernels
from tests.support.counts import count
from tests.support.kernels import computed_by, native_kernels

Floats = NDArray[np.float64]

HERE = Path(__file__).parent
GUARD_S = 600


@pytest.fixture
def native() -> NativeRecurrence:
    """The kernels as the service would load them."""
    require_native_kernels()
    return native_kernels().recurrence


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(4)


def some_stage(rng: np.random.Generator) -> Stage:
    """A line, or up to five ranges; numbers over wide scales, zeros included."""
    ends = [*np.unique(rng.integers(1, 4000, rng.integers(0, 5))).tolist(), None]
    zero_or_one = rng.integers(0, 4, (len(ends), 2)) > 0
    numbers = zero_or_one * 10.0 ** rng.uniform(-3, 5, (len(ends), 2))
    parts = zip(numbers.tolist(), ends, strict=True)
    return Stage("s", tuple(FitRange(overhead, cost, end) for (overhead, cost), end in parts))


def some_pipeline(rng: np.random.Generator, n: int) -> Pipeline:
    return Pipeline(tuple(some_stage(rng) for _ in range(n)), float(rng.uniform(0, 100)))


def some_lines(rng: np.random.Generator, n: int) -> LineProblem:
    g, G = 10.0 ** rng.uniform(-3, 5, n), 10.0 ** rng.uniform(-7, 1, n)
    return LineProblem(g=g, G=G, B=1.0, m=1.0, M=1.0, k_min=1, k_max=1)


class TestRecurrence:
    # Around the lengths at which the kernel changes its ways: groups of 4 stages, 256 fragments.
    @pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 64])
    @pytest.mark.parametrize("k", [1, 2, 255, 256, 257, 700])
    def test_the_bits_of_the_evaluator(
        self, native: NativeRecurrence, rng: np.random.Generator, n: int, k: int
    ) -> None:
        pipeline = some_pipeline(rng, n)
        x = rng.integers(1, 5000, (2, k)).astype(float)
        expected = [latency_us(pipeline, row.tolist()) for row in x]
        assert native.latencies_us(pipeline, x).tolist() == expected

    def test_sizes_at_the_end_of_a_range(self, native: NativeRecurrence) -> None:
        """An end belongs to its range; the size above it, whole or real, to the next."""
        stage = Stage("s", (FitRange(1.0, 0.0, 100), FitRange(2.0, 0.0, 200), FitRange(4.0, 0.0)))
        sizes = np.array([[100.0], [np.nextafter(100.0, 101.0)], [200.0], [201.0]])
        assert native.latencies_us(Pipeline((stage,)), sizes).tolist() == [1.0, 2.0, 2.0, 4.0]

    def test_arrays_of_any_layout(self, native: NativeRecurrence, rng: np.random.Generator) -> None:
        pipeline = some_pipeline(rng, 5)
        x = rng.integers(1, 5000, (6, 8))
        plain = native.latencies_us(pipeline, x.astype(float))
        assert native.latencies_us(pipeline, np.asfortranarray(x)).tolist() == plain.tolist()
        doubled = np.repeat(x, 2, axis=1)[:, ::2].astype(float)
        assert native.latencies_us(pipeline, doubled).tolist() == plain.tolist()
        assert native.latencies_us(pipeline, x.reshape(2, 3, 8)).shape == (2, 3)
        assert native.latencies_us(pipeline, x[:0]).shape == (0,)

    def test_a_size_that_is_no_number_stays_visible(
        self, kernels: Choice, rng: np.random.Generator
    ) -> None:
        x = np.full((1, 20), 7.0)
        x[0, 9] = np.nan
        with computed_by(kernels):
            assert np.isnan(latencies_us(some_pipeline(rng, 6), x)).all()

    def test_lines_in_real_sizes(self, kernels: Choice, rng: np.random.Generator) -> None:
        """`LineProblem.latency_us` equals the evaluator to 1e-12."""
        for _ in range(count(300)):
            lines = some_lines(rng, int(rng.integers(1, 13)))
            x = rng.uniform(0.0, 1e5, rng.integers(1, 600))
            evaluated = latency_us(lines.pipeline(), x.tolist())
            with computed_by(kernels):
                assert lines.latency_us(x) == pytest.approx(evaluated, rel=1e-12)

    def test_more_stages_than_a_pipeline_may_have(self, native: NativeRecurrence) -> None:
        """The kernel refuses what does not fit into its arrays."""
        with pytest.raises(ValueError, match="1 to 64 stages"):
            native.latency_of_lines_us(np.ones(65), np.ones(65), np.ones(3))


class TestChoice:
    def test_the_setting(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """SLUICE_KERNELS, and nothing or an empty text for auto."""
        monkeypatch.delenv("SLUICE_KERNELS", raising=False)
        assert asked() == "auto"
        for text, choice in (("", "auto"), ("numpy", "numpy"), ("native", "native")):
            monkeypatch.setenv("SLUICE_KERNELS", text)
            assert asked() == choice
        monkeypatch.setenv("SLUICE_KERNELS", "NumPy")
        with pytest.raises(InvalidInput, match="expected one of auto, native, numpy") as caught:
            asked()
        assert caught.value.field == "SLUICE_KERNELS"

    @pytest.mark.parametrize("setting", ["auto", "numpy"])
    def test_without_a_build_numpy_computes(
        self, setting: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr("solvers.kernels.native.BUILD", tmp_path)
        monkeypatch.setenv("SLUICE_KERNELS", setting)
        assert load_library(asked()) is None

    def test_numpy_is_numpy_also_with_a_build(self, monkeypatch: pytest.MonkeyPatch) -> None:
        require_native_kernels()
        monkeypatch.setenv("SLUICE_KERNELS", "numpy")
        assert load_library(asked()) is None
        assert load_library("native") is not None

    def test_a_build_that_is_asked_for_and_not_there(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr("solvers.kernels.native.BUILD", tmp_path)
        with pytest.raises(InvalidInput, match="there is no native build here"):
            load_library("native")

    def test_what_cannot_be_loaded_is_no_build(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """As where the checkout has come from a machine of another kind."""
        monkeypatch.setattr("solvers.kernels.native.BUILD", tmp_path)
        monkeypatch.delenv("SLUICE_KERNELS", raising=False)
        object_path().write_bytes(b"not an object")
        assert load_library(asked()) is None


# --- compiled in other ways -----------------------------------------------------------------------


def compile_kernels(target: Path, *options: str, files: Sequence[Path] = ()) -> None:
    """Compile these files, or else all sources, with these options."""
    names = [str(path) for path in files or sources()]
    libraries = [] if "-r" in options else ["-lm"]
    done = subprocess.run(
        [compiler(), *options, "-I", str(FOLDER), "-o", str(target), *names, *libraries],
        capture_output=True,
        text=True,
        check=False,
        timeout=GUARD_S,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_no_warning(tmp_path: Path) -> None:
    """Conversions included: sizes are 64 bits and signed, and nothing is cut off."""
    compile_kernels(
        tmp_path / "k.so", *FLAGS, "-O0", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion"
    )


def test_the_same_bits_on_every_processor(
    tmp_path: Path, native: NativeRecurrence, rng: np.random.Generator
) -> None:
    """The instruction sets that this machine has give what the oldest one gives.

    Sources without a function of several instruction sets are compiled at once: not optimised.
    """
    cloned_ones = [path for path in sources() if "CLONES" in path.read_text(encoding="utf-8")]
    assert cloned_ones
    rest = tmp_path / "rest.o"
    others = [path for path in sources() if path not in cloned_ones]
    plainly = [flag for flag in FLAGS if flag not in ("-shared", "-O3")]
    compile_kernels(rest, *plainly, "-O0", "-r", "-nostdlib", files=others)
    compile_kernels(tmp_path / "plain.so", *FLAGS, "-DSLUICE_PLAIN", files=[*cloned_ones, rest])
    plain, cloned = ctypes.CDLL(str(tmp_path / "plain.so")), native_kernels().library
    for n in range(2, 12):
        pipeline, x = some_pipeline(rng, n), rng.integers(1, 5000, (3, 400)).astype(float)
        values = NativeRecurrence(plain).latencies_us(pipeline, x)
        assert values.tolist() == native.latencies_us(pipeline, x).tolist()
        chain = some_chain(rng, n)
        one, other = (iterate(NativeMethod(of), chain) for of in (plain, cloned))
        assert one.iterations == other.iterations
        for name in ("y", "p", "violation"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def some_chain(rng: np.random.Generator, n: int) -> Chain:
    lines, boundaries = some_lines(rng, n), np.flatnonzero(rng.integers(0, 2, n - 1))
    return Chain(lines.g, lines.G, 1e5, 1e5, int(rng.integers(3, 200)), tuple(boundaries.tolist()))


def iterate(method: NativeMethod, chain: Chain) -> Iterate:
    found = method(chain, ChainOptions(close=1e-9, time_limit_s=GUARD_S))
    assert found is not None
    return found


def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    """Addresses, undefined behaviour and leaks, on random and degenerate input of every kernel.

    Not optimised: that compiles in a third of the time, and no access is optimised away.
    """
    program, cases = tmp_path / "sanitized", count(3000, share=30)
    sanitizers = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    options = [flag for flag in FLAGS if flag not in ("-shared", "-O3")]
    compile_kernels(program, *options, "-O0", "-g", *sanitizers, str(HERE / "sanitized.c"))
    done = subprocess.run(
        [program, "4", str(cases)],
        env={"ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=GUARD_S,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[-4000:]
    assert done.stdout == f"{cases} cases\n"
