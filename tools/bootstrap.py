"""Make `.venv` hold exactly what a lock file says, whatever the Python at hand brings along.

    python3 tools/bootstrap.py run          what the service needs   (requirements.lock)
    python3 tools/bootstrap.py dask         that, and the extra `dask` (requirements-dask.lock)
    python3 tools/bootstrap.py dev          that, and what tests need (requirements-dev.lock)

    --system-packages   root on a Debian-like system may install the package that brings pip
    --search            when this Python is out of range, look for a better one on the path

Plain Debian has `venv` but not `ensurepip`, so the environment is made without pip and pip is then
taken from the first place that has it (see `find_installer`). A stamp is written last and holds the
digest of the lock: a run that was interrupted starts afresh, a run with nothing to do ends at once.

Only the standard library is used, and only syntax that Python 3.6 can read: a Python that is too
old must get as far as the line that says so.
"""

import argparse
import contextlib
import glob
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import time
from typing import Iterable, Iterator, List, Optional

OLDEST, NEWEST = (3, 11), (3, 14)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
VENV_PYTHON = os.path.join(VENV, "bin", "python")
UNFINISHED = os.path.join(VENV, ".unfinished")
LOCKS = {
    "run": ["requirements.lock"],
    "dask": ["requirements-dask.lock"],
    "dev": ["requirements.lock", "requirements-dev.lock"],
}

# Where distributions keep the wheel that their own ensurepip would use.
WHEEL_FOLDERS = ("/usr/share/python-wheels", "/usr/share/python3-wheels")

# pip reads these as if they were options; each of them would install somewhere else.
MISLEADING = (
    "PIP_USER",
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_PYTHON",
    "PYTHONHOME",
    "__PYVENV_LAUNCHER__",
)

LAUNCHER = """#!/bin/sh
'''exec' {python} "$0" "$@"
' '''
import sys

sys.path[0] = {root!r}  # the packages run from the checkout
from app.cli import main

sys.exit(main())
"""


class CannotContinueError(Exception):
    """What stops the set-up, in one line that says what to do."""


def say(text: str) -> None:
    print("sluice: " + text, flush=True)


def main() -> int:
    arguments = parse_arguments()
    try:
        choose_python(arguments)
        with only_one_at_a_time():
            prepare(arguments.what, system_packages=arguments.system_packages)
    except CannotContinueError as reason:
        print("sluice: {}".format(reason), file=sys.stderr)
        return 1
    except OSError as reason:  # no room, no right to write, a folder in the way
        print("sluice: cannot set up .venv: {}".format(reason), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nsluice: interrupted; the same command starts again", file=sys.stderr)
        return 130
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=sorted(LOCKS))
    parser.add_argument("--system-packages", action="store_true")
    parser.add_argument("--search", action="store_true")
    return parser.parse_args()


# --- which Python ---------------------------------------------------------------------------------


def choose_python(arguments: argparse.Namespace) -> None:
    """Go on with a Python in range: this one, or with --search another one on the path."""
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return
    if arguments.search:
        for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
            other = shutil.which("python3.{}".format(minor))
            if other and answers([other, "-c", "import venv"]):
                os.execv(other, [other] + [word for word in sys.argv if word != "--search"])
    raise CannotContinueError(
        "Python {}.{} to {}.{} is needed and {} is {}.{}; name another: "
        "make PYTHON=/path/to/python3.12".format(
            *(OLDEST + NEWEST + (sys.executable,) + tuple(sys.version_info[:2]))
        )
    )


# --- the environment ------------------------------------------------------------------------------


def prepare(what: str, *, system_packages: bool) -> None:
    """Bring `.venv` to the state that the locks of `what` describe."""
    if any(stamp_holds(level) for level in LOCKS if covers(level, what)):
        return
    started = time.time()
    if os.path.exists(UNFINISHED) or not stamp_holds("run"):
        create_environment()
    write(UNFINISHED, "")
    install(find_installer(system_packages=system_packages), LOCKS[what][-1])
    compile_all()
    write(os.path.join(VENV, "bin", "sluice"), format_launcher(), mode=0o755)
    os.remove(UNFINISHED)
    write(stamp_path(what), digest(what))
    say("ready after {:.0f} s".format(time.time() - started))


def covers(level: str, what: str) -> bool:
    """Whether an environment made for `level` serves `what` too: dev holds all of run."""
    return set(LOCKS[what]) <= set(LOCKS[level])


def stamp_path(level: str) -> str:
    return os.path.join(VENV, ".ready-" + level)


def stamp_holds(level: str) -> bool:
    """Whether the environment was finished for these locks, in this place, and still starts."""
    try:
        with open(stamp_path(level)) as file:
            same = file.read() == digest(level)
    except OSError:
        return False
    return same and not os.path.exists(UNFINISHED) and answers([VENV_PYTHON, "-c", ""])


def digest(level: str) -> str:
    """SHA-256 over all that the environment depends on: its place, the launcher, its locks."""
    total = hashlib.sha256(format_launcher().encode())
    for name in LOCKS[level]:
        with open(os.path.join(ROOT, name), "rb") as file:
            total.update(hashlib.sha256(file.read()).digest())
    return total.hexdigest()


def create_environment() -> None:
    say("making .venv with Python {}.{}.{}".format(*sys.version_info[:3]))
    if os.path.islink(VENV):
        os.remove(VENV)
    elif os.path.lexists(VENV):
        shutil.rmtree(VENV)
    # Without pip: `venv` alone works everywhere, and fails halfway where ensurepip is missing.
    if not answers([sys.executable, "-m", "venv", "--without-pip", VENV]):
        raise CannotContinueError(
            "{} -m venv does not work here; {}".format(sys.executable, advice())
        )


def format_launcher() -> str:
    """The `sluice` command; run through sh, because a #! line has no room for a long path."""
    return LAUNCHER.format(python=shlex.quote(VENV_PYTHON), root=ROOT)


# --- where pip comes from -------------------------------------------------------------------------


def find_installer(*, system_packages: bool) -> List[str]:
    """The words that begin an install command working on `.venv`, from the first that has pip."""
    for source in (from_ensurepip, from_wheel, from_pip_at_hand, from_virtualenv, from_uv):
        found = source()
        if found:
            return found
    command = system_package_command()
    if system_packages and command and os.geteuid() == 0:
        say("this Python has no pip; as root: " + " ".join(command))
        # A fresh container has no package lists, so the update comes first.
        subprocess.call([command[0], "update", "-qq"])
        if subprocess.call(command, env=dict(os.environ, DEBIAN_FRONTEND="noninteractive")) == 0:
            found = from_ensurepip()
            if found:
                return found
    raise CannotContinueError("this Python has no pip; " + advice())


def from_ensurepip() -> Optional[List[str]]:
    if answers([VENV_PYTHON, "-m", "pip", "--version"]):
        return [VENV_PYTHON, "-m", "pip", "install"]
    if answers([VENV_PYTHON, "-m", "ensurepip"]):
        return [VENV_PYTHON, "-m", "pip", "install"]
    return None


def from_wheel() -> Optional[List[str]]:
    """pip runs from inside its own wheel."""
    for folder in WHEEL_FOLDERS:
        for wheel in sorted(glob.glob(os.path.join(folder, "pip-*.whl")), reverse=True):
            command = [VENV_PYTHON, os.path.join(wheel, "pip")]
            if answers([*command, "--version"]):
                return [*command, "install"]
    return None


def from_pip_at_hand() -> Optional[List[str]]:
    """A pip of another environment works on ours through --python (pip 22.3 and later)."""
    for command in ([sys.executable, "-m", "pip"], ["pip3"], ["pip"]):
        command = [*command, "--python", VENV_PYTHON]
        if answers([*command, "--version"]):
            return [*command, "install"]
    return None


def from_virtualenv() -> Optional[List[str]]:
    """virtualenv carries a pip of its own."""
    for command in ([sys.executable, "-m", "virtualenv"], ["virtualenv"]):
        if answers([*command, "--python", sys.executable, "--clear", VENV]):
            write(UNFINISHED, "")
            return from_ensurepip()
    return None


def from_uv() -> Optional[List[str]]:
    if answers(["uv", "--version"]):
        return ["uv", "pip", "install", "--python", VENV_PYTHON]
    return None


def system_package_command() -> Optional[List[str]]:
    """The command that makes ensurepip appear, where we know it; None elsewhere."""
    if shutil.which("apt-get"):
        package = "python{}.{}-venv".format(*sys.version_info[:2])
        return ["apt-get", "install", "-y", "--no-install-recommends", package]
    return None


def advice() -> str:
    command = system_package_command()
    if command:
        return "run this as root and try again: apt-get update && " + " ".join(command)
    return "install pip or virtualenv for {} and try again".format(sys.executable)


# --- the install ----------------------------------------------------------------------------------


def install(installer: List[str], lock: str) -> None:
    """Install the lock as it stands: hashes checked, wheels only, nothing resolved again."""
    total = count_packages(os.path.join(ROOT, lock))
    say("installing {} packages from {}".format(total, lock))
    command = [*installer, "--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", lock]
    if installer[0] != "uv":
        # pip compiles on one core; `compile_all` takes them all.
        command += ["--no-compile", "--disable-pip-version-check", "--no-input"]
        command += ["--progress-bar", "off"]
    environment = {key: text for key, text in os.environ.items() if key not in MISLEADING}
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        universal_newlines=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    tail = show_progress(process.stdout or [], total)
    if process.wait() != 0:
        print("".join(tail), file=sys.stderr)
        raise CannotContinueError("the install failed (see above); the same command tries again")


def compile_all() -> None:
    """Compile every module: a process that may not write would do it again at each start."""
    say("compiling")
    answers([VENV_PYTHON, "-m", "compileall", "-q", "-j", "0", os.path.join(VENV, "lib")])


def count_packages(lock: str) -> int:
    with open(lock) as file:
        return len({line.split("==")[0] for line in file if "==" in line and line[0].isalnum()})


def show_progress(lines: Iterable[str], total: int) -> List[str]:
    """Turn pip's output into one line a package; returns the last lines, for when it fails."""
    tail: List[str] = []
    done, name = 0, ""
    for line in lines:
        tail = [*tail[-20:], line]
        words = line.split()
        if line.startswith("Collecting "):
            done, name = done + 1, words[1]
        elif words and words[0] == "Downloading" and not words[1].endswith(".metadata"):
            say("  [{:2}/{}] {} {}".format(done, total, name, " ".join(words[2:])))
        elif line.startswith("Installing collected"):
            say("  unpacking {} packages".format(len(words) - 3))
    return tail


# --- small things ---------------------------------------------------------------------------------


def answers(command: List[str]) -> bool:
    """Whether the command exists and ends well; what it prints is of no interest."""
    try:
        return (
            subprocess.call(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            == 0
        )
    except OSError:
        return False


def write(path: str, text: str, *, mode: int = 0o644) -> None:
    """Write a file as a whole or not at all."""
    with open(path + ".new", "w") as file:
        file.write(text)
    os.chmod(path + ".new", mode)
    os.replace(path + ".new", path)


@contextlib.contextmanager
def only_one_at_a_time() -> Iterator[None]:
    """Two makes at once share one `.venv`: the second waits, then finds the work done."""
    import fcntl  # not on every system that can read this file

    with open(os.path.abspath(__file__)) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another make prepares .venv; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:
            pass  # a file system without locks: go on without
        yield


if __name__ == "__main__":
    sys.exit(main())
