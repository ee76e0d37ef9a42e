"""Timelines read back: their rows and blocks in µs, through the labels of their own axes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass

from app.plots.timeline_plan import DrawnSchedule
from app.plots.timeline_svg import render_timeline_svg
from domain.timeline import Timeline

SVG = "{http://www.w3.org/2000/svg}"
UNITS = {"ns": 1e-3, "µs": 1.0, "ms": 1e3, "s": 1e6}


def drawn(*schedules: DrawnSchedule) -> ET.Element:
    return ET.fromstring(render_timeline_svg(schedules).encode())


def one(timeline: Timeline, bound_us: float | None = None) -> ET.Element:
    return drawn(DrawnSchedule("exact", timeline, bound_us))


def by_class(root: ET.Element, *names: str) -> list[ET.Element]:
    """Elements that have all of these classes."""
    return [found for found in root.iter() if set(names) <= set(found.get("class", "").split())]


def text_of(element: ET.Element) -> str:
    return "".join(element.itertext())


def title_of(element: ET.Element) -> str:
    return element.findtext(f"{SVG}title") or ""


def value(element: ET.Element, name: str) -> float:
    return float(element.get(name, "0"))


def shift(element: ET.Element) -> float:
    return float(re.findall(r"translate\(0 ([0-9.]+)\)", element.get("transform", ""))[0])


def corners(path: ET.Element) -> list[tuple[float, float]]:
    found = re.findall(r"[ML](-?[0-9.]+) (-?[0-9.]+)", path.get("d", ""))
    return [(float(x), float(y)) for x, y in found]


@dataclass(frozen=True)
class Panel:
    """One schedule of a picture, its pixels turned into µs by the labels of its own axis."""

    element: ET.Element

    @property
    def us_per_pixel(self) -> float:
        lines = [value(line, "x1") for line in by_class(self.element, "grid")]
        labels = [text_of(label) for label in by_class(self.element, "tick")][: len(lines)]
        amount, unit = labels[-1].split()
        return float(amount) * UNITS[unit] / (lines[-1] - lines[0])

    def time_us(self, x: float) -> float:
        return (x - value(by_class(self.element, "grid")[0], "x1")) * self.us_per_pixel

    def rows(self) -> list[ET.Element]:
        return by_class(self.element, "stage")

    def blocks(self, stage: int) -> list[tuple[float, float, float]]:
        """(start, end of the overhead, end) of each block, µs."""
        found = []
        for block in by_class(self.rows()[stage], "block"):
            boxes = {box.get("class"): box for box in block.iter(f"{SVG}rect")}
            edges = [
                (value(box, "x"), value(box, "x") + value(box, "width")) for box in boxes.values()
            ]
            start, end = min(left for left, _ in edges), max(right for _, right in edges)
            middle = value(boxes["byte"], "x") if "byte" in boxes else end
            found.append((self.time_us(start), self.time_us(middle), self.time_us(end)))
        return found


def panels(root: ET.Element) -> list[Panel]:
    return [Panel(element) for element in by_class(root, "schedule")]
