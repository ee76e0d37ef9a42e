"""Client of the Sluice service, and reader of its table files.

The reader (`Table`) and the errors need nothing but Python 3.9. The clients, and what requests are
made of, need Python 3.11, the clients httpx too (`pip install 'sluice-client[client]'`); they are
only imported when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sluice_client._version import __version__
from sluice_client.errors import (
    Conflict,
    DeadlineExceeded,
    Declined,
    InputRefused,
    InvalidRequest,
    InvalidTable,
    NotFound,
    OutOfRange,
    ProblemError,
    ServiceFailed,
    SluiceClientError,
    Stopped,
    Unavailable,
    UnexpectedAnswer,
    Unreachable,
)
from sluice_client.table import Certificate, Table
from sluice_client.table_description import TableDescription

if TYPE_CHECKING:
    from sluice_client.client import AsyncClient, Client
    from sluice_client.contract.compose import ComposedStageIn
    from sluice_client.contract.constraints import ConstraintsIn
    from sluice_client.contract.fit_options import ExcludedSampleIn, FitOptionsIn, StepGroupIn
    from sluice_client.contract.hide import GranularityIn, HostStagesIn, ProcessesIn
    from sluice_client.contract.layer import ComponentIn, LayerIn
    from sluice_client.contract.measurements import MeasurementIn
    from sluice_client.contract.pipeline import (
        AggregateIn,
        LineCostIn,
        LineStageIn,
        PipelineIn,
        RangeIn,
        RangesCostIn,
        RangesStageIn,
        WindowIn,
    )
    from sluice_client.contract.setting import (
        ConfigurationIn,
        ConfiguredIn,
        StaticIn,
        StepIn,
        StepsIn,
        WholeIn,
    )
    from sluice_client.contract.simulate import DeliveryIn
    from sluice_client.contract.source import SourceIn
    from sluice_client.contract.transfers import TransferIn, TransfersIn
    from sluice_client.contract.uncertainty import (
        DrawsIn,
        RepeatIn,
        StatedIntervalIn,
        UncertaintyIn,
    )
    from sluice_client.contract.workload import WorkloadSizeIn
    from sluice_client.dataclass_json import as_json, from_json
    from sluice_client.pipelines import pipeline_of_lines
    from sluice_client.problems import check_job
    from sluice_client.retries import NO_RETRY, Retry

__all__ = [
    "NO_RETRY",
    "AggregateIn",
    "AsyncClient",
    "Certificate",
    "Client",
    "ComponentIn",
    "ComposedStageIn",
    "ConfigurationIn",
    "ConfiguredIn",
    "Conflict",
    "ConstraintsIn",
    "DeadlineExceeded",
    "Declined",
    "DeliveryIn",
    "DrawsIn",
    "ExcludedSampleIn",
    "FitOptionsIn",
    "GranularityIn",
    "HostStagesIn",
    "InputRefused",
    "InvalidRequest",
    "InvalidTable",
    "LayerIn",
    "LineCostIn",
    "LineStageIn",
    "MeasurementIn",
    "NotFound",
    "OutOfRange",
    "PipelineIn",
    "ProblemError",
    "ProcessesIn",
    "RangeIn",
    "RangesCostIn",
    "RangesStageIn",
    "RepeatIn",
    "Retry",
    "ServiceFailed",
    "SluiceClientError",
    "SourceIn",
    "StatedIntervalIn",
    "StaticIn",
    "StepGroupIn",
    "StepIn",
    "StepsIn",
    "Stopped",
    "Table",
    "TableDescription",
    "TransferIn",
    "TransfersIn",
    "Unavailable",
    "UncertaintyIn",
    "UnexpectedAnswer",
    "Unreachable",
    "WholeIn",
    "WindowIn",
    "WorkloadSizeIn",
    "__version__",
    "as_json",
    "check_job",
    "from_json",
    "pipeline_of_lines",
]

_LATER = {
    "AsyncClient": "client",
    "Client": "client",
    "as_json": "dataclass_json",
    "from_json": "dataclass_json",
    "pipeline_of_lines": "pipelines",
    "check_job": "problems",
    "NO_RETRY": "retries",
    "Retry": "retries",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import sys
    from importlib import import_module

    if sys.version_info < (3, 11):
        raise ImportError(f"{__name__}.{name} needs Python 3.11 or later; Table does not")
    if name not in _LATER:
        return _part_of_contract(name)
    try:
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "httpx":
            raise
        needed = f"{__name__}.{name} needs httpx: pip install 'sluice-client[client]'"
        raise ModuleNotFoundError(needed, name="httpx") from None


def _part_of_contract(name: str) -> Any:
    """Return a class of `sluice_client.contract`, from the module that declares it."""
    from importlib import import_module
    from pkgutil import iter_modules

    from sluice_client import contract

    for each in iter_modules(contract.__path__, f"{contract.__name__}."):
        module = import_module(each.name)
        found = vars(module).get(name)
        if found is not None and found.__module__ == each.name:
            return found
    raise AttributeError(f"{contract.__name__} has no {name!r}")
