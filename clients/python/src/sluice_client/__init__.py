"""Client of the Sluice service, and reader of its table files.

The reader (`Table`), what requests are made of and the errors need nothing but Python 3.9. The
clients need Python 3.11 and httpx (`pip install 'sluice-client[client]'`), and are only imported
when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluice_client._version import __version__
from sluice_client.errors import (
    Conflict,
    DeadlineExceeded,
    Declined,
    FieldProblem,
    InputRefused,
    InvalidRequest,
    InvalidTable,
    NotFound,
    OutOfRange,
    Problem,
    ProblemError,
    ServiceFailed,
    SluiceClientError,
    Stopped,
    Unavailable,
    UnexpectedAnswer,
    Unreachable,
)
from sluice_client.shapes import (
    Aggregate,
    ComposedStage,
    Constraints,
    Delivery,
    ExcludedSample,
    FitOptions,
    FitRange,
    Granularity,
    HostStages,
    Measurement,
    Pipeline,
    Processes,
    Setting,
    SettingStep,
    Stage,
    StepGroup,
    WorkloadSize,
)
from sluice_client.table import Certificate, Table, TableDescription

if TYPE_CHECKING:
    from sluice_client.async_client import AsyncClient
    from sluice_client.client import Client
    from sluice_client.retries import NO_RETRY, Retry
    from sluice_client.uncertainty import CostInterval, Draws, UncertaintyOptions

__all__ = [
    "NO_RETRY",
    "Aggregate",
    "AsyncClient",
    "Certificate",
    "Client",
    "ComposedStage",
    "Conflict",
    "Constraints",
    "CostInterval",
    "DeadlineExceeded",
    "Declined",
    "Delivery",
    "Draws",
    "ExcludedSample",
    "FieldProblem",
    "FitOptions",
    "FitRange",
    "Granularity",
    "HostStages",
    "InputRefused",
    "InvalidRequest",
    "InvalidTable",
    "Measurement",
    "NotFound",
    "OutOfRange",
    "Pipeline",
    "Problem",
    "ProblemError",
    "Processes",
    "Retry",
    "ServiceFailed",
    "Setting",
    "SettingStep",
    "SluiceClientError",
    "Stage",
    "StepGroup",
    "Stopped",
    "Table",
    "TableDescription",
    "Unavailable",
    "UncertaintyOptions",
    "UnexpectedAnswer",
    "Unreachable",
    "WorkloadSize",
    "__version__",
]

_LATER = {
    "AsyncClient": "async_client",
    "Client": "client",
    "CostInterval": "uncertainty",
    "Draws": "uncertainty",
    "NO_RETRY": "retries",
    "Retry": "retries",
    "UncertaintyOptions": "uncertainty",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import sys
    from importlib import import_module

    if sys.version_info < (3, 11):
        raise ImportError(f"{__name__}.{name} needs Python 3.11 or later; Table does not")
    try:
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "httpx":
            raise
        needed = f"{__name__}.{name} needs httpx: pip install 'sluice-client[client]'"
        raise ModuleNotFoundError(needed, name="httpx") from None
