"""Leave out of the image's environment what the service never loads: nearly half of it.

    python3 tools/slim_environment.py /opt/sluice/.venv

What others bring for parts of them that are not used here: OR-Tools has pandas for its Python
models, of which the solvers use the compiled core alone; rich has colours for source text.
Tests, stubs and the installer go as well. A test runs the product without all of it
(tests/tooling/test_slim_environment.py).
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

# Folders or modules of site-packages, with what says that they are installed.
PACKAGES = (
    *("pandas", "dateutil", "tzdata", "six", "pytz"),  # for OR-Tools' models
    "pygments",
    *("pip", "setuptools", "pkg_resources", "_distutils_hack"),
)
PARTS = (
    *("ortools/sat", "ortools/constraint_solver", "ortools/routing", "ortools/math_opt"),
    *("ortools/pdlp", "ortools/packing", "ortools/set_cover", "ortools/scheduling"),
)
_DISTRIBUTIONS = {"dateutil": "python_dateutil"}


def found(site: Path) -> Iterator[Path]:
    """Yield what goes, of a folder of installed packages."""
    for name in PACKAGES:
        yield from (site / name, site / f"{name}.py", site / f"{name}.libs")
        distribution = _DISTRIBUTIONS.get(name, name)
        yield from (
            one
            for one in site.glob("*.dist-info")
            if one.name.lower().partition("-")[0] == distribution
        )
    yield site / "distutils-precedence.pth"
    yield from (site / part for part in PARTS)
    yield from site.rglob("tests")
    yield from site.rglob("*.pyi")


def main(environment: Path) -> None:
    """Delete it."""
    for site in environment.glob("lib/python3*/site-packages"):
        for path in [*found(site)]:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
