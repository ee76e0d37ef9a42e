"""Repositories: they take and return domain objects or records; they flush and never commit."""

from models.repositories.answers import AnswerRepository
from models.repositories.api_keys import ApiKeyRepository
from models.repositories.changes import ChangeRepository
from models.repositories.fits import FitRepository
from models.repositories.hidden_answers import HiddenAnswerRepository
from models.repositories.jobs import JobRepository
from models.repositories.leftovers import LeftoverRepository
from models.repositories.profiles import ProfileRepository
from models.repositories.request_keys import RequestKeyRepository
from models.repositories.retention import RetentionRepository
from models.repositories.runners import RunnerRepository
from models.repositories.stored_bytes import StoredBytesRepository
from models.repositories.tables import TableRepository
from models.repositories.traces import TraceRepository

__all__ = [
    "AnswerRepository",
    "ApiKeyRepository",
    "ChangeRepository",
    "FitRepository",
    "HiddenAnswerRepository",
    "JobRepository",
    "LeftoverRepository",
    "ProfileRepository",
    "RequestKeyRepository",
    "RetentionRepository",
    "RunnerRepository",
    "StoredBytesRepository",
    "TableRepository",
    "TraceRepository",
]
