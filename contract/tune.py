"""What sluice tune prints as JSON: the size to set, and what it rests on."""

from __future__ import annotations

from .declare import Output, output, sent
from .profile import ProfileRevisionOut
from .transfers import TransfersOut
from .verification import VerificationOut


@output
class TunedOut(Output):
    """The size to set, and what it rests on: it is that in use before, unless another won the race.

    `is_of_model`: it is the size that the model recommends. `verification` is of the model, by the
    transfers of the race.
    """

    set_bytes: int = sent("the size to set, bytes")
    is_of_model: bool = sent("whether it is the size that the model recommends")
    profile: ProfileRevisionOut = sent("the revision that the stages are stored as")
    transfers: TransfersOut = sent("what the transfers of the race say")
    verification: VerificationOut = sent("whether the model holds, by the transfers of the race")
