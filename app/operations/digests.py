"""Digests of operations: equal exactly for those of one result in one version of the program."""

from __future__ import annotations

import hashlib

from app.operations.operation import OperationKind
from app.version import VERSION


def digest_of(kind: OperationKind, *parts: object) -> str:
    """Return the SHA-256 in hexadecimal of the kind, these parts, and the program's version."""
    return hashlib.sha256("\n".join(map(repr, (VERSION, kind, *parts))).encode()).hexdigest()
