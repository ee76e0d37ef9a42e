"""No name that the package offers is hidden by a module of the same name."""

import pkgutil

import solvers
from solvers import registered_strategies, warm_up


def test_no_module_hides_a_name() -> None:
    """Importing solvers.x sets the attribute x of the package, also where a function stood."""
    modules = {module.name for module in pkgutil.iter_modules(solvers.__path__)}
    assert modules.isdisjoint(solvers.__all__)


def test_the_names_are_there_after_everything_was_imported() -> None:
    """Twice, because the first call imports the modules."""
    for _ in range(2):
        warm_up()
        assert {spec.name.value for spec in registered_strategies()} >= {"exact", "fixed", "ramp"}
