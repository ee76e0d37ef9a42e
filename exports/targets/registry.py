"""Every export target, by name."""

from __future__ import annotations

from difflib import get_close_matches

from domain.errors import InvalidInput
from exports.targets import (
    c_header,
    item_cuts,
    loggopsim,
    mooncake,
    mpich,
    mvapich,
    nccl,
    nccl_env,
    openmpi_json,
    openmpi_mca,
    openmpi_rules,
    simgrid,
    storage,
    ucc,
    ucx,
    ucx_costs,
)
from exports.targets.target import Target

TARGETS: tuple[Target, ...] = (
    c_header.TARGET,
    simgrid.TARGET,
    loggopsim.TARGET,
    mooncake.TARGET,
    nccl.TARGET,
    nccl_env.TARGET,
    nccl_env.BUFFER_TARGET,
    ucx.TARGET,
    ucx.SHM_TARGET,
    ucx_costs.TARGET,
    openmpi_mca.TARGET,
    openmpi_rules.TARGET,
    openmpi_json.TARGET,
    mpich.TARGET,
    mpich.OFI_TARGET,
    mvapich.TARGET,
    ucc.TARGET,
    storage.CUFILE_TARGET,
    storage.S3_TARGET,
)


_OF_ITEMS = frozenset(target.name for target in item_cuts.ITEM_TARGETS)


def target_named(name: str) -> Target:
    """The target of this name. Raises InvalidInput naming those that there are."""
    for target in TARGETS:
        if target.name == name:
            return target
    if name in _OF_ITEMS:
        raise InvalidInput(
            f"{name} is given a cut between items: sluice optimize SOURCE --items FILE --target "
            f"{name}, or GET /optimizations/{{id}}/exports/{name}",
            field="target",
        )
    names = ", ".join(target.name for target in TARGETS)
    near = get_close_matches(name, [target.name for target in TARGETS], n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    raise InvalidInput(f"expected a target out of: {names}{meant}", field="target")
