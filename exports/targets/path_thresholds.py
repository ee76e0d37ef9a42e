"""From which message size on another path is taken: a rendezvous protocol, or an upload in parts.

Source    UCX: src/ucp/core/ucp_context.c (`RNDV_THRESH`) of 1.13.1. Open MPI:
          opal/mca/btl/base/btl_base_mca.c (`eager_limit`) and ompi/mca/pml/ob1/pml_ob1_sendreq.h of
          4.1.4. MPICH: src/mpid/ch4/netmod/ofi/ofi_init.c and src/mpid/ch3/include/mpidimpl.h of
          4.0.2. S3: boto3/s3/transfer.py (`TransferConfig`) and
          awscli/customizations/s3/transferconfig.py.
Exact     whole bytes. UCX and the S3 clients take the other path from the size on that is written;
          Open MPI and MPICH keep the first one up to a limit, so that the size before is written.
Traps     Open MPI takes a header off its limit, and MPICH's ch3 too: with those the path changes a
          header's length earlier. A limit below that header has stopped Open MPI on an assertion:
          none is written below 1 KiB. MPICH's limit for ch4:ofi is the provider's own where it is
          below 1; ch4:ucx has UCX's. An S3 client takes no upload of one piece above 5 GiB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from domain.errors import InvalidInput, StrategyDeclined
from domain.units import format_bytes
from exports.targets.commentary import comment, reading
from exports.targets.mpich import VERIFIED as MPICH
from exports.targets.target import TargetOption, checked_options
from exports.targets.ucx import VERIFIED as UCX


@dataclass(frozen=True, slots=True, kw_only=True)
class PathThreshold:
    """A setting of one size at which a program passes from one path to another.

    `line` has `{parameter}` and `{size}`; `forms` are the lines by the option `form`. `is_limit`:
    the size is the last one of the first path, else the first of the second. `never`: what stands
    for the first path alone, "" where nothing does; `always_bytes`: the size that stands for the
    second path alone, None where none does.
    """

    name: str
    title: str
    lines: Mapping[str, str]
    suffixes: Mapping[str, str]
    grammar: str
    parameters: Sequence[str] = ()
    is_limit: bool = False
    never: str = ""
    always_bytes: int | None = None
    min_bytes: int = 1
    max_bytes: int
    note: str = ""
    verified_by: str = ""

    @property
    def options(self) -> tuple[TargetOption, ...]:
        """The form of the lines, and which parameter they set."""
        form = TargetOption("form", next(iter(self.lines)), "how it is written", (*self.lines,))
        if not self.parameters:
            return (form,)
        which = TargetOption("parameter", self.parameters[0], "what is set", (*self.parameters,))
        return form, which

    def options_from(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return every option, as given or by default. Raises InvalidInput naming the first bad
        one.
        """
        return checked_options(self.name, self.options, given)

    def suffix_for(self, options: Mapping[str, str]) -> str:
        """Return the suffix of a file with these options."""
        return self.suffixes[options["form"]]

    def render(
        self, threshold_bytes: int | None, options: Mapping[str, str], said: Sequence[str]
    ) -> str:
        """Return the setting by which messages of this size and more take the second path.

        None: none does; 0: all do. `options` are checked, `said` the lines of the head. Raises
        StrategyDeclined where the program has no such setting.
        """
        value = self._value(threshold_bytes)
        named = ", ".join(f"{name}={one}" for name, one in options.items())
        head = [
            f"{self.title} ({self.name}: {named})",
            *said,
            *([self.note] if self.note else []),
            reading(self.verified_by, self.grammar),
        ]
        line = self.lines[options["form"]]
        return comment(head) + line.format(parameter=options.get("parameter", ""), size=value)

    def _value(self, threshold_bytes: int | None) -> str:
        if threshold_bytes is None:
            if self.never:
                return self.never
            raise self._declined("the first path is the faster one for every message")
        if threshold_bytes == 0:
            if self.always_bytes is not None:
                return str(self.always_bytes)
            raise self._declined("the second path is the faster one for every message")
        value = threshold_bytes - 1 if self.is_limit else threshold_bytes
        if not self.min_bytes <= value <= self.max_bytes:
            span = f"{format_bytes(self.min_bytes)} to {format_bytes(self.max_bytes)}"
            raise self._declined(f"the size is {value} bytes, and it takes {span}")
        return str(value)

    def _declined(self, why: str) -> StrategyDeclined:
        return StrategyDeclined(f"{self.name} cannot say this: {why}", field="target")


_SHELL_FORMS = {"shell": "export {parameter}={size}\n"}
UCX_THRESHOLD = PathThreshold(
    name="ucx-rndv-thresh",
    title="UCX: message size from which rendezvous is used",
    lines={"conf": "UCX_RNDV_THRESH={size}\n", "shell": "export UCX_RNDV_THRESH={size}\n"},
    suffixes={"conf": "conf", "shell": "sh"},
    grammar="RNDV_THRESH in src/ucp/core/ucp_context.c, UCX 1.13.1",
    never="inf",
    always_bytes=0,
    max_bytes=2**48,
    verified_by=UCX,
)
OPENMPI_LIMIT = PathThreshold(
    name="openmpi-eager-limit",
    title="Open MPI: greatest message that a BTL sends eagerly",
    lines={
        "file": "{parameter} = {size}\n",
        "shell": "export OMPI_MCA_{parameter}={size}\n",
    },
    suffixes={"file": "conf", "shell": "sh"},
    grammar="opal/mca/btl/base/btl_base_mca.c, Open MPI 4.1.4",
    parameters=(
        "btl_tcp_eager_limit",
        "btl_vader_eager_limit",
        "btl_self_eager_limit",
        "btl_openib_eager_limit",
    ),
    is_limit=True,
    min_bytes=1024,
    max_bytes=2**31 - 1,
    note="Open MPI takes a header off this limit: the path changes by its length earlier",
    verified_by="ompi_info 4.1.4",
)
MPICH_LIMIT = PathThreshold(
    name="mpich-eager-limit",
    title="MPICH: greatest message that is sent eagerly",
    lines={"env": "{parameter}={size}\n", **_SHELL_FORMS},
    suffixes={"env": "env", "shell": "sh"},
    grammar="src/mpid/ch4/netmod/ofi/ofi_init.c and src/mpid/ch3 of MPICH 4.0.2",
    parameters=("MPIR_CVAR_CH4_OFI_EAGER_MAX_MSG_SIZE", "MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE"),
    is_limit=True,
    min_bytes=1024,
    max_bytes=2**31 - 1,
    note="counts where MPICH has this device (mpichversion); ch4:ucx has UCX's threshold",
    verified_by=MPICH,
)
S3_THRESHOLD = PathThreshold(
    name="s3-multipart-threshold",
    title="S3 clients: size from which an object is sent in parts",
    lines={
        "aws": "[default]\ns3 =\n  multipart_threshold = {size}\n",
        "boto3": (
            "from boto3.s3.transfer import TransferConfig\n\n"
            "transfer_config = TransferConfig(multipart_threshold={size})\n"
        ),
    },
    suffixes={"aws": "conf", "boto3": "py"},
    grammar="boto3/s3/transfer.py, awscli/customizations/s3/transferconfig.py",
    max_bytes=5 * 2**30,
    verified_by="uploads of aws-cli 1.45.11, boto3 1.43.11",
)
PATH_THRESHOLDS = (UCX_THRESHOLD, OPENMPI_LIMIT, MPICH_LIMIT, S3_THRESHOLD)


def path_threshold_named(name: str) -> PathThreshold:
    """Return the setting of this name. Raises InvalidInput naming those that there are."""
    names = [threshold.name for threshold in PATH_THRESHOLDS]
    for one in PATH_THRESHOLDS:
        if one.name == name:
            return one
    near = get_close_matches(name, names, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    raise InvalidInput(f"expected a target out of: {', '.join(names)}{meant}", field="target")
