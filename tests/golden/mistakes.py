"""Wrong inputs of the command line, over all verbs: exit code, stream and sentence."""

from __future__ import annotations

from tests.golden.asked import Command
from tests.golden.stand_ins import ALONE

_TWO, _NOTHING = "<folder>/two.json", "0" * 32
_LINES = {
    "no-command": "",
    "command": "optimise x",
    "option": "optimize x --bytes 4 --strategi exact",
    "no-source": "optimize --bytes 4",
    "no-value": "optimize x --bytes",
    "size": "optimize x --bytes 4QiB",
    "choice": "optimize x --bytes 4 --strategy exatc",
    "no-size": f"optimize {_TWO}",
    "no-file": "optimize ./nowhere.json --bytes 4",
    "profile": "optimize myrinet-gms --bytes 4KiB",
    "field": "optimize wrong.json",
    "field-json": "optimize wrong.json --json",
    "json": "optimize broken.json --bytes 4",
    "negative": f"optimize {_TWO} --bytes -4",
    "other-message": "optimize examples/own-transfers.csv --bytes 1MiB",
    "transfers-fitted": "fit examples/own-transfers.csv",
    "share": f"optimize {_TWO} --bytes 4 --relative 1e999",
    "names": f"compare {_TWO} --bytes 4 --strategies auto,fixd",
    "kind": "fit examples/local-path-direct.csv --kind slow",
    "whole": "fit examples/local-path-direct.csv --max-ranges 2.5",
    "range": "fit examples/local-path-direct.csv --max-ranges 99",
    "group": "fit examples/local-path-direct.csv --group both",
    "pair": "compose --stage copy",
    "tolerance": "plan --tolerance 300%",
    "two-cuts": f"simulate {_TWO} --bytes 4 --repeat 2 --fragments 2,2",
    "backwards": f"table {_TWO} --from 8KiB --to 4KiB",
    "no-target": f"export {_TWO}",
    "target": f"export {_TWO} --target ucs",
    "target-option": f"export {_TWO} --target ucx --option colour=red",
    "no-setting": f"audit {_TWO}",
    "setting": f"audit {_TWO} --setting 1:whole,2KiB",
    "unchecked": f"apply mpich {_TWO}",
    "no-calculation": f"model hide {_TWO} --bytes 4KiB",
    "rules": f"model deliver {_TWO} --bytes 4KiB --rules eager,lazy",
    "stages": f"model thresholds {_TWO} --bytes 4KiB --stages 1..x",
    "one-path": f"crossover {_TWO}",
    "path-target": f"crossover {_TWO} {_TWO} --target ucx",
    "unit": "model layer cmam-finite --bytes 64 --clock 33",
    "layer": "model layer cmam-finit --bytes 64",
    "measure": "measure --listen 127.0.0.1 --host 10.0.0.2",
    "cpus": "measure memcpy --cpus one",
    "recorded": f"verify {_TWO} --recorded nowhere.csv",
    "path": "tune udp-to-file",
    "no-program": "sweep --bytes 4MiB",
    "no-place": "sweep --bytes 4MiB -- true",
    "how": "sweep --bytes 4MiB --time ( -- true {bytes}",
    "mover": "model mover shake",
    "paper": "model reproduce wang99",
    "verb": "profiles lst",
    "revision": "profiles use myrinet-gam 99",
    "unasked": "profiles delete local-path",
    "identifier": "answers show 42",
    "nothing": f"jobs show {_NOTHING}",
    "no-scope": "keys create build-server",
    "key": "keys revoke 7f3a5c",
    "page": "open none-such",
    "workers": "admin fleet --workers -1",
    "no-number": "admin work --workers many",
    "port": "serve --port http",
    "no-verb": "admin engine",
    "demo": "demo --twice",
    "limit": "changes --limit many",
    "there": f"admin backup {_TWO}",
    "keep": "admin collect --keep nothing --dry-run",
    "backup": "admin restore nowhere.sluice",
    "shell": "admin completion tcsh",
}
MISTAKES: tuple[Command, ...] = tuple(
    Command(f"mistaken/{name}", tuple(line.split()), environment=ALONE)
    for name, line in _LINES.items()
)
FILES = {
    "wrong.json": {
        "pipeline": {"stages": [{"name": "a", "overhead_us": -1, "ns_per_byte": "slow"}]},
        "message_bytes": 0,
        "surprise": True,
    },
    "broken.json": "{",
}
