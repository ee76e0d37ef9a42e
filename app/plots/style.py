"""Colours, lines and letters of a plot, for light and dark paper. Inert text: nothing is loaded."""

STYLE = """
svg{--paper:#fff;--ink:#1c2128;--muted:#59636e;--grid:#e3e7ec;--edge:#b6bec8;--data:#2f6db3;
--line:#c2410c;--band:#f59e0b;--end:#6b46a8;--s0:#0072b2;--s1:#d55e00;--s2:#00855f;--s3:#a3497f;
--s4:#7a6a00;color:var(--ink);font:12px system-ui,-apple-system,"Segoe UI","Noto Sans",sans-serif}
@media (prefers-color-scheme:dark){svg{--paper:#14181e;--ink:#e8ebef;--muted:#9aa5b1;--grid:#29313a;
--edge:#4a5561;--data:#79b4f2;--line:#ff9a5c;--band:#f5b942;--end:#c3a6f5;--s0:#5cb8f0;--s1:#ff9a5c;
--s2:#3ecf9e;--s3:#e59cc6;--s4:#e0cf5a}}
.paper{fill:var(--paper)}
text{fill:var(--ink);font-variant-numeric:tabular-nums}
.title{font-size:21px;font-weight:650}.heading{font-size:15px;font-weight:650}.strong{font-weight:650}
.muted{fill:var(--muted)}.small,.tick,.figures{font-size:11px}.tick{fill:var(--muted)}
.axis{font-size:11px;font-weight:600}.middle{text-anchor:middle}.end{text-anchor:end}
.frame{fill:none;stroke:var(--edge)}.grid{stroke:var(--grid)}.minor{stroke:var(--edge)}
.on-lines{paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round}
path,line,circle{fill:none}
.dot{stroke:var(--data);stroke-width:4;stroke-linecap:round}
.few{stroke-opacity:.38}.some{stroke-opacity:.62}.many{stroke-opacity:.9}
.unused{stroke:var(--muted);stroke-opacity:.35}
.outlier{stroke:var(--data);stroke-width:1}
.median{stroke:var(--ink);stroke-width:1.5}
.fitted{stroke:var(--line);stroke-width:2;stroke-linejoin:round}
.level{stroke:var(--line);stroke-width:1.5}
.band{fill:var(--band);fill-opacity:.32}
.range-end{stroke:var(--end);stroke-width:1.2;stroke-dasharray:4 3}
.zero,.beyond{fill:var(--data)}
.curve{stroke:var(--data);stroke-width:1.5;stroke-opacity:.75}
.whisker{stroke-width:1.3}
.s0{--of:var(--s0)}.s1{--of:var(--s1)}.s2{--of:var(--s2)}.s3{--of:var(--s3)}.s4{--of:var(--s4)}
.series .curve,.series .whisker{stroke:var(--of)}.mark{fill:var(--of)}
"""
