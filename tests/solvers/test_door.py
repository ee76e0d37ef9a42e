"""The door of the room: a name that it offers is never hidden by a module of the same name."""

import pkgutil

import solvers
from solvers import registered_strategies, warm_up


def test_no_module_hides_a_name_of_the_door() -> None:
    """Importing solvers.x sets the attribute x of the package, also where a function stood."""
    modules = {module.name for module in pkgutil.iter_modules(solvers.__path__)}
    assert modules.isdisjoint(solvers.__all__)


def test_the_door_stays_open_after_everything_was_imported() -> None:
    """Twice, because the first call imports the modules."""
    for _ in range(2):
        warm_up()
        assert {spec.name.value for spec in registered_strategies()} >= {"exact", "fixed", "ramp"}
