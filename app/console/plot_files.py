"""Plots written to files: whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from domain.errors import InvalidInput

if TYPE_CHECKING:
    from domain.fit import TraceFit
    from domain.fit_plot import FitPlot

_FIELD = "plot"


def check_plot_file(name: str) -> None:
    """Refuse what cannot become a file before any work is done. Raises InvalidInput."""
    path = Path(name)
    if name in ("", "-") or path.is_dir():
        raise InvalidInput("expected the name of a file for the plot, as fit.svg", field=_FIELD)
    if not path.parent.is_dir():
        raise InvalidInput("the folder of the plot's file does not exist", field=_FIELD)


def write_plot(name: str, fit: TraceFit, plot: FitPlot) -> None:
    """Draw the fit into this file, in place of what it held. Raises InvalidInput."""
    from app.plots.fit_svg import render_fit_svg

    drawing = render_fit_svg(fit, plot).encode()
    path = Path(name).resolve()
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(drawing)  # a pipe or a device
        else:
            _replace(path, drawing)
    except OSError as refusal:
        reason = refusal.strerror or "it cannot be written"
        raise InvalidInput(f"the plot's file: {reason}", field=_FIELD) from None


def _replace(path: Path, content: bytes) -> None:
    part = path.with_name(f".{path.name[:100]}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
