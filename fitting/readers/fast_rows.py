"""Rows of plain numbers, many at a time.

Source: own. A decimal number of at most 15 digits is m / 10^d with m and 10^d both exact in a
double, and IEEE division rounds that quotient correctly: the result is the very double that
`float(text)` gives. So the digits of a whole chunk are read as integers, and the places of the
points give d.
Notation: m, the digits without the point; d, how many of them come after it.
Cost: about 60 ns a number; rows with exponents, signs or blanks go through numpy.loadtxt, 200 ns.
Exact: equal to reading row by row (tests/fitting/test_fast_rows.py).
Traps: what is unusual in any way is not judged here: the answer is None, and the slow path, which
names line and rule, has to look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    Matrix: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]
    Places: TypeAlias = np.ndarray[tuple[int], np.dtype[np.intp]]

_DIGITS = b"0123456789"
_OTHER = b"eE+- \t"  # what a plain row may hold besides digits, points and separators
_JOINED = bytes.maketrans(b"\n", b",")
_NEWLINE, _COMMA, _POINT = 10, 44, 46
_MAX_EXACT = 2**53
_MAX_DECIMALS = 22  # 10^22 is the greatest power of ten that a double holds exactly
_MAX_PLAIN_LINE = 4_000  # int() refuses more digits than this on its own account


def plain_rows(chunk: bytes, num_columns: int, *, num_whole: int = 2) -> Matrix | None:
    """Whole lines as numbers, (rows, num_columns); None unless every line is a plain row.

    The first `num_whole` columns are whole numbers. Empty lines and comments are left out. Nothing
    is said about the range of a value, beyond that it is exact up to 2^53.
    """
    import numpy as np

    rows = _without_comments(chunk.replace(b"\r\n", b"\n")).strip(b"\n")
    if not rows:
        return np.empty((0, num_columns))
    num_rows = rows.count(b"\n") + 1
    separators = (b"," * (num_columns - 1) + b"\n") * num_rows
    if rows.translate(None, _DIGITS + b"." + _OTHER) != separators[:-1] or _has_long_line(rows):
        return None
    if any(letter in rows for letter in _OTHER):
        return _general(rows, (num_rows, num_columns), num_whole)
    return _decimal(rows, (num_rows, num_columns), num_whole)


def _without_comments(chunk: bytes) -> bytes:
    if b"#" not in chunk and b"\n\n" not in chunk:
        return chunk
    lines = chunk.split(b"\n")
    kept = [line for line in lines if line.strip(b" \t\r") and line.lstrip(b" \t\r")[:1] != b"#"]
    return b"\n".join(kept)


def _has_long_line(rows: bytes) -> bool:
    import numpy as np

    ends = np.flatnonzero(np.frombuffer(rows, np.uint8) == _NEWLINE)
    inner = int(np.diff(ends).max()) if len(ends) > 1 else 0
    first, last = (int(ends[0]), len(rows) - int(ends[-1])) if len(ends) else (len(rows), 0)
    return max(inner, first, last) > _MAX_PLAIN_LINE


def _decimal(rows: bytes, shape: tuple[int, int], num_whole: int) -> Matrix | None:
    """Numbers of digits and points alone."""
    import numpy as np

    letters = np.frombuffer(rows.translate(_JOINED) + b",", np.uint8)
    marks = np.flatnonzero((letters == _COMMA) | (letters == _POINT))
    points = np.flatnonzero(letters[marks] == _POINT)
    fields = points - np.arange(len(points))
    lengths = np.diff(marks, prepend=-1) - 1  # of the digits before each mark
    num_columns = shape[1]
    if not _are_numbers(lengths, points, fields % num_columns, num_whole):
        return None
    digits = np.fromstring(rows.translate(_JOINED, b"."), dtype=np.int64, sep=",")
    decimals = lengths[points + 1]
    if digits.max() >= _MAX_EXACT or decimals.max(initial=0) > _MAX_DECIMALS:
        return _general(rows, shape, num_whole)
    values = digits.astype(np.float64)
    values[fields] /= (10.0 ** np.arange(_MAX_DECIMALS + 1))[decimals]
    return values.reshape(-1, num_columns)


def _are_numbers(lengths: Places, points: Places, columns: Places, num_whole: int) -> bool:
    """Whether every field is digits with at most one point, the first columns without one.

    `lengths` counts the digits before each mark, a point or the end of a field; `points` says which
    marks are points, `columns` the column of each.
    """
    import numpy as np

    has_point = np.zeros(len(lengths), dtype=bool)
    has_point[points] = True
    if len(points) and (
        has_point[points + 1].any()
        or columns.min() < num_whole
        or (lengths[points] + lengths[points + 1]).min() == 0
    ):
        return False
    ends = ~has_point
    ends[1:] &= ~has_point[:-1]  # fields without a point
    return not (lengths[ends] == 0).any()


def _general(rows: bytes, shape: tuple[int, int], num_whole: int) -> Matrix | None:
    """Numbers with exponents, signs or blanks."""
    import numpy as np

    pattern = rows.translate(None, _DIGITS + b" \t")
    bare = b"," * num_whole
    if pattern.count(b"\n" + bare) + pattern.startswith(bare) != shape[0]:
        return None
    lines = rows.decode("ascii").split("\n")
    try:
        values = np.loadtxt(lines, np.float64, comments=None, delimiter=",", ndmin=2)
    except ValueError:
        return None
    return values if values.shape == shape else None
