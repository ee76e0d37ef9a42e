"""Plots written to files: whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.console.whole_files import check_target, write_whole

if TYPE_CHECKING:
    from domain.fit import TraceFit
    from domain.fit_plot import FitPlot

_FIELD = "plot"
_NOUN = "the plot"


def check_plot_file(name: str) -> None:
    """Refuse what cannot become a file before any work is done. Raises InvalidInput."""
    check_target(name, field=_FIELD, noun=_NOUN, example="fit.svg")


def write_plot(name: str, fit: TraceFit, plot: FitPlot) -> None:
    """Draw the fit into this file, in place of what it held. Raises InvalidInput."""
    from app.plots.fit_svg import render_fit_svg

    write_whole(name, render_fit_svg(fit, plot).encode(), field=_FIELD, noun=_NOUN)
