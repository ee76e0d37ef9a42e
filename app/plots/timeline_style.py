"""Colours and letters of a timeline, for light and dark paper, wide and narrow windows.

Every rule is below the class of the picture, so that it stays inside where the picture is part of a
page. The letters grow where the picture is scaled down: 960 units on 360 px are 0.375, and 26 units
are still 10 px.
"""

SCOPE = "sluice-timeline"

STYLE = """
.sluice-timeline{--paper:#fff;--ink:#1c2128;--muted:#59636e;--grid:#e3e7ec;--edge:#b6bec8;
--over:#1c4f8f;--over-odd:#2f6fb5;--byte:#6fa5de;--byte-odd:#9cc3ee;--on-over:#fff;--on-byte:#14202e;
--idle:#aeb8c3;--path:#c2410c;--bound:#6b46a8;--mark:#fdf0e4;max-width:100%;height:auto;
font:13px system-ui,-apple-system,"Segoe UI","Noto Sans",sans-serif}
@media screen and (prefers-color-scheme:dark){
.sluice-timeline{--paper:#14181e;--ink:#e8ebef;--muted:#9aa5b1;
--grid:#29313a;--edge:#4a5561;--over:#86baf2;--over-odd:#aad0fa;--byte:#2f649f;--byte-odd:#42618a;
--on-over:#10161d;--on-byte:#f3f7fb;--idle:#4b5661;--path:#ff9a5c;--bound:#c3a6f5;--mark:#2a221b}}
.sluice-timeline text{fill:var(--ink);font-variant-numeric:tabular-nums}
.sluice-timeline .paper{fill:var(--paper)}
.sluice-timeline .title{font-size:21px;font-weight:650}
.sluice-timeline .heading{font-size:16px;font-weight:650}
.sluice-timeline .name{font-weight:650}.sluice-timeline .narrow{display:none}
.sluice-timeline .muted,.sluice-timeline .tick{fill:var(--muted)}
.sluice-timeline .end{text-anchor:end}.sluice-timeline .middle{text-anchor:middle}
.sluice-timeline .plate{fill:var(--paper)}.sluice-timeline .plate.on-ground{fill:var(--mark)}
.sluice-timeline .ground{fill:var(--mark)}
.sluice-timeline .grid{stroke:var(--grid)}.sluice-timeline .axis{stroke:var(--edge)}
.sluice-timeline .hatch{stroke:var(--idle);stroke-width:1.6}
.sluice-timeline .over{fill:var(--over)}.sluice-timeline .byte{fill:var(--byte)}
.sluice-timeline .odd .over{fill:var(--over-odd)}.sluice-timeline .odd .byte{fill:var(--byte-odd)}
.sluice-timeline .size{font-size:12px;fill:var(--on-byte);pointer-events:none}
.sluice-timeline .on-over{fill:var(--on-over)}
.sluice-timeline .delay{fill:none;stroke:var(--muted);stroke-width:1.5;stroke-dasharray:3 3}
.sluice-timeline .halo{fill:none;stroke:var(--paper);stroke-width:5px;stroke-linejoin:round}
.sluice-timeline .path{fill:none;stroke:var(--path);stroke-width:3px;stroke-linejoin:round}
.sluice-timeline .arrow{fill:var(--path)}
.sluice-timeline .latency{stroke:var(--ink);stroke-width:1.5}
.sluice-timeline .bound{stroke:var(--bound);stroke-width:1.8;stroke-dasharray:6 4}
.sluice-timeline .bound-label{fill:var(--bound)}
.sluice-timeline .halo,.sluice-timeline .path,.sluice-timeline line{pointer-events:none}
@media (max-width:720px){.sluice-timeline{font-size:18px}.sluice-timeline .wide{display:none}
.sluice-timeline .narrow{display:inline}.sluice-timeline .title{font-size:26px}
.sluice-timeline .heading{font-size:21px}}
@media (max-width:480px){.sluice-timeline{font-size:26px}
.sluice-timeline .title{font-size:32px}.sluice-timeline .heading{font-size:27px}}
"""
