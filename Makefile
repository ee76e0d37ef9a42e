# The verbs of this project. `make help` lists them; CI runs the same ones.
#
#   PYTHON=python3.12   the Python that .venv is made with (3.11 to 3.14; python3 when not given)
#   ONCE=1              demo: stop after printing
#   PORT=8080           demo, serve: the port (SLUICE_PORT in the environment wins)
#   NAME=min_gain       report: a parameter, whose files are listed too
#   JOBS=3              test, quick, campaign: processes; one more than cores, since some tests wait

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo serve test quick check fmt report bench screenshots campaign lock installed clean ready-run ready-dev

# Some thousand starts of Python would each compile all of it anew.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
UV     ?= uv
JOBS   ?= 3

BIN   := .venv/bin
# Tests that share a fixture stay together: each process would make it anew.
SPREAD = -n $(JOBS) --dist worksteal
PYTEST = $(BIN)/python -m pytest $(SPREAD)
# A package is checked from the day it exists.
PACKAGES := $(wildcard contract domain fitting measuring solvers analysis papers exports models app)
TYPED := $(PACKAGES) $(wildcard migrations bench tools clients/python/src)

# A Python named by the caller is taken or refused; python3 may be exchanged for a better one.
BOOTSTRAP = $(PYTHON) tools/bootstrap.py$(if $(filter file,$(origin PYTHON)), --search)
PORT_ENV  = $(if $(PORT),SLUICE_PORT="$${SLUICE_PORT:-$(PORT)}")

help:  ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1	/p' $(MAKEFILE_LIST) | expand -t 12

demo: ready-run  ## set up, solve real input through the service, print it, keep serving
	@$(PORT_ENV) $(BIN)/python -m app.demo $(if $(filter-out 0,$(ONCE)),--once)

serve: ready-run  ## only serve (PORT=8080)
	@$(PORT_ENV) $(BIN)/sluice serve

test: check  ## all checks, then all tests (a campaign's twentieth, fixed seed)
	$(PYTEST)

quick: check  ## before a commit: all checks, and the tests nearest to what has changed (two minutes)
	$(BIN)/python -m tools.quick_tests $(SPREAD)

check: ready-dev  ## style, types and which package imports which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(TYPED)
	$(BIN)/lint-imports --no-cache

fmt: ready-dev  ## put style right where that can be done mechanically
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Some shells set NAME for themselves.
report: ready-dev  ## how long and how alike the sources are, and which files say NAME; gates nothing
	$(BIN)/python -m tools.report$(if $(filter command,$(origin NAME)), --name $(NAME))

bench: ready-dev  ## measure solvers and service; results as JSON in bench/results
	$(BIN)/python -m bench

screenshots: ready-dev  ## pictures of the page for the documents (needs Chromium)
	$(BIN)/python -m tools.screenshots

campaign: ready-dev  ## the full statistical and fuzz campaigns (long)
	SLUICE_CAMPAIGN=1 $(PYTEST)

# Universal locks: hashes, no index address, every supported Python and architecture in one file.
LOCK = $(UV) pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url \
	--no-emit-find-links --python-version 3.11 $(LOCK_OPTIONS) pyproject.toml
lock:  ## resolve the dependencies again (needs uv; LOCK_OPTIONS=--upgrade for newer ones)
	@command -v $(UV) >/dev/null || { echo "sluice: make lock needs uv: pip install uv" >&2; exit 1; }
	$(LOCK) --output-file requirements.lock
	$(LOCK) --extra dask --constraint requirements.lock --output-file requirements-dask.lock
	$(LOCK) --group dev --constraint requirements.lock --output-file requirements-dev.lock

installed: ready-dev  ## the wheel in an empty environment with what is locked for it, and its demo
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	into="$(BIN)/python -m pip --python $$folder/env install --quiet --no-compile --no-deps" && \
	$(BIN)/python -m hatchling build -t wheel -d "$$folder" && \
	$(BIN)/python -m venv --without-pip "$$folder/env" && \
	$$into --require-hashes --only-binary :all: -r requirements.lock && \
	$$into "$$folder"/sluice-*.whl && cd "$$folder" && \
	env -u PYTHONPATH -u SLUICE_DATABASE_URL XDG_DATA_HOME="$$folder" SLUICE_PORT=0 \
	  env/bin/sluice demo --once

clean:  ## remove what make and the tools have made, but no data of the service
	rm -rf .venv .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -rf solvers/kernels/native/build exports/native/build measuring/probe/build measuring/mover/build
	rm -rf clients/c/build clients/c/mover/build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- .venv: tools/bootstrap.py compares the locks' digests and ends at once if nothing changed -----

# Setting up for a person may, as root on Debian, install the package that brings pip. Tests may not.
ready-run: python-there
	@$(BOOTSTRAP) run --system-packages
	@$(BIN)/python tools/build_kernels.py

ready-dev: python-there
	@$(BOOTSTRAP) dev
	@$(BIN)/python tools/build_kernels.py

.PHONY: python-there
python-there:
	@command -v $(PYTHON) >/dev/null || { echo "sluice: there is no $(PYTHON) here;" \
	  "install Python 3.11 to 3.14 or name one: make PYTHON=/path/to/python3.12" >&2; exit 1; }
