"""One file a table. Importing this package completes the metadata."""

from models.rows.active_table import ActiveTableRow
from models.rows.answer import AnswerRow
from models.rows.answer_body import AnswerBodyRow
from models.rows.api_key import ApiKeyRow
from models.rows.change import ChangeRow
from models.rows.compiled_table import CompiledTableRow
from models.rows.compiled_table_file import CompiledTableFileRow
from models.rows.fit import FitRow
from models.rows.further_trace import FurtherTraceRow
from models.rows.hidden_answer import HiddenAnswerRow
from models.rows.job import JobRow
from models.rows.owner_bytes import OwnerBytesRow
from models.rows.profile import ProfileRow
from models.rows.request_key import RequestKeyRow
from models.rows.retention import RetentionRow
from models.rows.revision import RevisionRow
from models.rows.runner import RunnerRow
from models.rows.trace import TraceRow
from models.rows.verification import VerificationRow

__all__ = [
    "ActiveTableRow",
    "AnswerBodyRow",
    "AnswerRow",
    "ApiKeyRow",
    "ChangeRow",
    "CompiledTableFileRow",
    "CompiledTableRow",
    "FitRow",
    "FurtherTraceRow",
    "HiddenAnswerRow",
    "JobRow",
    "OwnerBytesRow",
    "ProfileRow",
    "RequestKeyRow",
    "RetentionRow",
    "RevisionRow",
    "RunnerRow",
    "TraceRow",
    "VerificationRow",
]
