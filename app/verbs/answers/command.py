"""sluice answers: those that are stored, one as it was given, and what one is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.console.argument_parts import add_count_and_owner, add_owner
from app.ui.grammar import Arguments, Group
from domain.units import parse_bytes

if TYPE_CHECKING:
    from app.questions.answers import AnswerFilter
    from app.ui.terminal import Output

_ID = "0123456789abcdef0123456789abcdef"  # of an example


def add_verbs(command: Group) -> None:
    """Add the verbs."""
    listing = command.add(
        "list", "list stored answers, the newest first", "--profile myrinet-gam", is_default=True
    )
    listing.option("--profile", metavar="PROFILE", help="of name or name@revision alone")
    listing.option("--bytes", read=parse_bytes, metavar="SIZE", help="of this message alone")
    add_count_and_owner(listing)
    show = command.add("show", "show a stored answer as it was given", _ID)
    naming = command.add("name", "give a stored answer a name and a note", f"{_ID} 'NIC x2'")
    for verb in (show, naming):
        verb.argument("id", metavar="ID", help="of the answer")
        add_owner(verb)
    naming.argument("name", metavar="NAME", is_optional=True, help='of one line; "" for none')
    naming.option("--note", metavar="TEXT", help='about it; "" for none')


def run(arguments: Arguments, output: Output) -> int:
    """List stored answers, name one, or show one as it was given."""
    from app.console.stored import emit, limit_of, owned_store
    from app.questions.answers import describe_answer, get_answer, list_answers
    from app.schemas.answers import read_answer
    from app.verbs.answers.answer import answers_out, summary_out
    from app.verbs.answers.show import described, listing
    from app.verbs.optimize.show import parts

    with owned_store(arguments) as store:
        if arguments.verb == "name":
            named = describe_answer(store, arguments.id, name=arguments.name, note=arguments.note)
            found = summary_out(named.summary())
            emit(found, output, described(found))
            return 0
        if arguments.verb != "show":
            listed = answers_out(list_answers(store, _wanted(arguments), limit=limit_of(arguments)))
            emit(listed, output, listing(listed))
            return 0
        record = get_answer(store, arguments.id)
    if output.wants_json:
        output.document(record.body)
    else:
        shown = parts(read_answer(record.body, items=True))
        output.parts([*described(summary_out(record.summary())), *shown])
    return 0


def _wanted(arguments: Arguments) -> AnswerFilter:
    """Return which answers are listed. Raises InvalidInput."""
    from app.questions.answers import AnswerFilter
    from domain.profile import ProfileReference

    if arguments.profile is None:
        return AnswerFilter(message_bytes=arguments.bytes)
    profile = ProfileReference.parse(arguments.profile)
    return AnswerFilter(profile.name, profile.revision, arguments.bytes)
