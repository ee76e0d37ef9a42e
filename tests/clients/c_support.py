"""Compiling the C library and its programs, and calling it from Python."""

from __future__ import annotations

import atexit
import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support.system import require_system

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "clients" / "c"
MOVER = CLIENT / "mover"
INCLUDES = (f"-I{CLIENT / 'include'}", f"-I{MOVER / 'include'}")
TABLES = ROOT / "tests" / "data" / "tables"
INSTALL = (
    "apt-get install gcc g++ gcc-multilib musl-tools clang libclang-rt-14-dev valgrind cmake "
    "pkg-config make"
)
COMPILERS = ("gcc", "clang")
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic")
ADDRESSES = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
THREADS = ("-O1", "-g", "-fsanitize=thread")
GUARD_S = 500
# What a compiler does only where further packages are installed.
_OPTIONS_OF_PACKAGES = ("-m32", "-static", "-fsanitize=")

ERRORS = {
    "SLUICE_OK": 0,
    "SLUICE_E_ARGUMENT": -1,
    "SLUICE_E_SYSTEM": -2,
    "SLUICE_E_FORMAT": -3,
    "SLUICE_E_VERSION": -4,
    "SLUICE_E_TRUNCATED": -5,
    "SLUICE_E_CHECKSUM": -6,
    "SLUICE_E_INVALID": -7,
    "SLUICE_E_RANGE": -8,
    "SLUICE_E_CAPACITY": -9,
    "SLUICE_E_NO_REPEAT": -10,
    "SLUICE_E_BUSY": -11,
    "SLUICE_E_CHANGED": -12,
    "SLUICE_E_IN_USE": -13,
}


def require(program: str) -> str:
    """The program's path; without it the test is skipped, and in CI it fails."""
    found = shutil.which(program)
    require_system(found, program, INSTALL)
    assert found is not None
    return found


@cache
def require_compiler(compiler: str, options: tuple[str, ...] = ()) -> str:
    """Return the compiler's path where it makes a program with these options.

    A program is compiled to tell: `gcc` is there on many machines where its 32-bit headers are not,
    and `clang` where its sanitizers are not. Else the test is skipped, and in CI it fails.
    """
    found = require(compiler)
    told = [word for word in options if word.startswith(_OPTIONS_OF_PACKAGES)]
    language = "c++" if "c++" in options else "c"
    if told or language == "c++":
        source = "#include <stdlib.h>\nint main(void) { return EXIT_SUCCESS; }\n"
        if any("=fuzzer," in word for word in told):  # has a main of its own
            entry = "int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)"
            source = f"#include <stddef.h>\n{entry} {{ return data == NULL && size > 0; }}\n"
        made = _folder() / f"probe-{compiler}{'-'.join(told)}-{language}".replace("/", "")
        line = [found, *told, "-x", language, "-", "-o", str(made)]
        ended = subprocess.run(line, input=source, text=True, capture_output=True, check=False)
        require_system(ended.returncode == 0, " ".join([compiler, language, *told]), INSTALL)
    return found


def run(command: Sequence[object], *, cwd: Path | None = None) -> str:
    """What the command printed; the test fails where it does not end with 0."""
    ended = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=GUARD_S,
        check=False,
    )
    assert ended.returncode == 0, f"{command}\nended with {ended.returncode}\n{ended.stdout}"
    return ended.stdout


def sources() -> list[Path]:
    """The library's own."""
    return sorted((CLIENT / "src").glob("*.c"))


@cache
def _folder() -> Path:
    """A folder of this process, removed at its end."""
    made = tempfile.mkdtemp(prefix="sluice-c-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


@cache
def archive(compiler: str, options: tuple[str, ...]) -> Path:
    """The library as the Makefile's options make it, compiled once a process."""
    return _archived("libsluice", sources(), compiler, options)


@cache
def mover_archive(compiler: str, options: tuple[str, ...]) -> Path:
    """The mover alike, without the library that it needs."""
    return _archived("libsluice-mover", sorted(MOVER.glob("src/*.c")), compiler, options)


def _archived(name: str, files: list[Path], compiler: str, options: tuple[str, ...]) -> Path:
    line = [require_compiler(compiler, options), "-std=c11", "-fPIC", "-fvisibility=hidden"]
    archiver = require("ar")
    # A test that is skipped leaves no folder for the next one to meet.
    folder = _folder() / f"{name}-{compiler}-{'-'.join(options)}".replace("/", "")
    folder.mkdir()
    run(
        [*line, "-DSLUICE_BUILDING", *WARNINGS, *options, *INCLUDES, "-c", *files],
        cwd=folder,
    )
    run([archiver, "rcs", folder / f"{name}.a", *sorted(folder.glob("*.o"))])
    return folder / f"{name}.a"


@cache
def mover_program(name: str, *, compiler: str, options: tuple[str, ...] = ("-O2",)) -> Path:
    """A program of clients/c/mover (as tests/unit, or tool), compiled once a process."""
    folder = MOVER / name
    files = sorted(folder.glob("*.c")) if folder.is_dir() else [MOVER / f"{name}.c"]
    made = mover_archive(compiler, options).parent / Path(name).name
    libraries = (mover_archive(compiler, options), archive(compiler, options))
    compiles = require_compiler(compiler, options)
    line = [compiles, "-std=c11", *WARNINGS, *options, "-ffp-contract=off", *INCLUDES]
    run([*line, *files, *libraries, "-pthread", "-lm", "-o", made])
    return made


@cache
def mover_library() -> Path:
    """The mover as a shared library, with libsluice in it and only its public names."""
    made = mover_archive("gcc", ("-O2",)).parent / "libsluice-mover.so"
    parts = (mover_archive("gcc", ("-O2",)), archive("gcc", ("-O2",)))
    shown = f"-Wl,--version-script={MOVER / 'sluice_mover.map'}"
    whole = ("-Wl,--whole-archive", *parts, "-Wl,--no-whole-archive")
    run([require("gcc"), "-shared", "-pthread", shown, *whole, "-o", made])
    return made


def program(name: str, folder: Path, *, compiler: str, options: Sequence[str] = ("-O2",)) -> Path:
    """A program of clients/c (as tests/unit), linked with the library."""
    made = folder / f"{Path(name).name}-{compiler}"
    instrumented = tuple(word.replace("=fuzzer,", "=fuzzer-no-link,") for word in options)
    library = archive(compiler, instrumented)
    compiles = require_compiler(compiler, tuple(options))
    line = [compiles, "-std=c11", *WARNINGS, *options, "-pthread"]
    run([*line, "-I", CLIENT / "include", CLIENT / f"{name}.c", library, "-o", made])
    return made


def shared_library(folder: Path, *, compiler: str, options: Sequence[str] = ("-O2",)) -> Path:
    """The shared library."""
    made = folder / f"libsluice-{compiler}.so"
    library = archive(compiler, tuple(options))
    run(
        [
            require(compiler),
            *options,
            "-shared",
            "-o",
            made,
            "-Wl,--whole-archive",
            library,
            "-Wl,--no-whole-archive",
        ]
    )
    return made


class Fault(ctypes.Structure):
    """What is wrong with a file: sluice_fault."""

    _fields_ = (
        ("size", ctypes.c_uint64),
        ("rule", ctypes.c_char_p),
        ("offset", ctypes.c_uint64),
        ("code", ctypes.c_int32),
    )

    @classmethod
    def of(cls, library: ctypes.CDLL, data: bytes) -> Fault:
        """What the library finds in these bytes."""
        fault = cls(ctypes.sizeof(cls))
        code = library.sluice_explain_memory(ctypes.byref(fault), data, len(data))
        assert code == fault.code
        return fault


@cache
def loaded(path: Path) -> ctypes.CDLL:
    """The library with the types of its functions."""
    library = ctypes.CDLL(str(path))
    table, u64, size = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t
    number, double = ctypes.POINTER(u64), ctypes.POINTER(ctypes.c_double)
    library.sluice_table_from_memory.argtypes = (table, ctypes.c_char_p, size)
    library.sluice_table_open.argtypes = (table, ctypes.c_char_p)
    library.sluice_table_close.argtypes = (table,)
    library.sluice_repeat.argtypes = (table, u64, number)
    library.sluice_schedule.argtypes = (table, u64, number, size, ctypes.POINTER(size))
    library.sluice_cut_begin.argtypes = (table, table, u64)
    library.sluice_cut_next.argtypes = (table, number)
    library.sluice_certificate.argtypes = (table, u64, double, double)
    library.sluice_explain_memory.argtypes = (ctypes.POINTER(Fault), ctypes.c_char_p, size)
    library.sluice_error_text.restype = ctypes.c_char_p
    library.sluice_version.restype = ctypes.c_char_p
    return library


@dataclass(frozen=True)
class CTable:
    """A table file in memory as the library reads it; `code` is what opening gave."""

    library: ctypes.CDLL
    data: bytes
    table: ctypes.Array[ctypes.c_uint64]
    code: int

    @classmethod
    def of(cls, library: ctypes.CDLL, data: bytes) -> CTable:
        """Open these bytes."""
        table = (ctypes.c_uint64 * 256)()
        return cls(library, data, table, library.sluice_table_from_memory(table, data, len(data)))

    def schedule(self, message_bytes: int) -> tuple[int, ...]:
        """The sizes for this message, from the array and from the iterator alike."""
        count = ctypes.c_size_t()
        code = self.library.sluice_schedule(self.table, message_bytes, None, 0, ctypes.byref(count))
        assert code == ERRORS["SLUICE_E_CAPACITY"]
        sizes = (ctypes.c_uint64 * count.value)()
        code = self.library.sluice_schedule(
            self.table, message_bytes, sizes, count.value, ctypes.byref(count)
        )
        assert code == 0
        assert self._iterated(message_bytes) == list(sizes)
        return tuple(sizes)

    def _iterated(self, message_bytes: int) -> list[int]:
        cut, size = (ctypes.c_uint64 * 16)(), ctypes.c_uint64()
        sizes: list[int] = []
        assert self.library.sluice_cut_begin(cut, self.table, message_bytes) == 0
        while self.library.sluice_cut_next(cut, ctypes.byref(size)) == 1:
            sizes.append(size.value)
        return sizes

    def repeat(self, message_bytes: int) -> int:
        """The repeated size, 0 where there is none."""
        size = ctypes.c_uint64()
        code = self.library.sluice_repeat(self.table, message_bytes, ctypes.byref(size))
        assert code in (0, ERRORS["SLUICE_E_NO_REPEAT"])
        return size.value

    def certificate(self, message_bytes: int) -> tuple[float, float]:
        """What is proven of both."""
        cut, repeat = ctypes.c_double(), ctypes.c_double()
        code = self.library.sluice_certificate(
            self.table, message_bytes, ctypes.byref(cut), ctypes.byref(repeat)
        )
        assert code == 0
        return cut.value, repeat.value
