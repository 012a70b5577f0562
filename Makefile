# What people do here, by name. Everything runs in .venv, which is set up when it is missing or out of date.
#
#   make test ARGS="tests/kernel -k fold"     other arguments for pytest
#   make bench BENCH=bench/loop.py            one benchmark
#   make kills KILLS=2000                     as many real kills; SEED=17 for one run, FIRST=5000 for others
#   make simulate SEEDS=20000                 as many simulated worlds; SEED=17 for one, told in full
#   make properties DEPTH=100                 as many times the examples of each property
#   make claims PAIRS=5000                    as many pairs of tables, every claim about them judged; SEED=17 for others
#   make dressed PAIRS=500                    as many pairs, each as it is and with all that sources may declare
#   make differential CASES=5000              as many questions to every engine, each answered in plain Python too
#   make workers RUNS=1000                    as many runs on three workers, one killed and one stopped
#   make load SOAK=3600                       clients on live runs for an hour; CLIENTS=100 LIVE=20 for fewer
#   make mutants OF="kernel/decide"           every small change of a module; SAMPLE=0 for those of all
#   make demo PYTHON=/opt/python/bin/python3  another Python

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help demo set-up test test-oldest test-peers test-browser kills simulate properties claims dressed differential \
	workers load mutants check check-web web bench docs diagram lock clean
# One target at a time, so that `make -j check test` prints one thing after the other.
.NOTPARALLEL:

# Nothing of the caller's own Python set-up may reach ours. pip's settings may: they say where the package index is.
# Without what was compiled before, each of the commands that tests start would compile the whole library.
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME PYTHONSTARTUP CONDA_PREFIX MYPYPATH PYTHONDONTWRITEBYTECODE PYTHONOPTIMIZE

# The first Python that is new enough and really runs: version managers leave names behind that do not.
PYTHON ?= $(shell unset PYTHONPATH PYTHONHOME; for python in python3.13 python3.12 python3.11 python3; do \
	if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	then echo $$python; break; fi; done)
BIN := .venv/bin
BENCH ?= $(wildcard bench/*.py)
ARGS ?=
KILLS ?= 60
FIRST ?= 0
SEEDS ?= 2000
SEED ?=
RUNS ?= 60
CLIENTS ?= 1000
LIVE ?= 200
SOAK ?= 0
DEPTH ?= 20
PAIRS ?= 1000
CASES ?= 1000
SAMPLE ?= 300
OF ?=

define ready
	@python="$(PYTHON)"; if [ -z "$$python" ]; then \
	echo "treadle needs Python 3.11 or newer with its venv module, and found none; install it, or say where it is:" >&2; \
	echo "    make $@ PYTHON=/path/to/python3" >&2; exit 2; fi; "$$python" scripts/venv.py $(1)
endef

# Prints the plain command, then runs it. The model is named, so that a key in the environment never makes a bill.
define ask
	@printf '\n$$ treadle ask "%s" --model offline --trace%s\n\n' $(1) "$(2)"
	@$(BIN)/treadle ask $(1) --model offline --trace$(2)
endef

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: ## set everything up and run the main job, with no key
	$(call ready,)
	$(call ask,"Compare the amount totals between fi_reporting and consolidation_mart for company 1001 in period 202401", --skill analyst)
	$(call ask,"What's the total value of our gadget inventory?", --skill inventory)
	@printf '\nTo ask, watch and steer in a browser:\n\n$$ %s\n' '$(BIN)/treadle serve --model offline --skill analyst --skill inventory --open'

set-up: ## set everything up for the tests and the linters, and run none
	$(call ready,lint test)

test: ## set everything up and run the tests
	$(call ready,test)
	@$(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal $(ARGS)

test-oldest: ## pass the tests with the oldest libraries that pyproject.toml allows
	$(call ready,lock)
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-oldest
	$(BIN)/uv pip install --quiet --python .venv-oldest --resolution lowest-direct --group build --group test --editable ".[all]"
	@.venv-oldest/bin/python -m pytest -n auto --maxprocesses 8 --dist worksteal -o filterwarnings=default $(ARGS)

test-peers: ## fetch and build what others made, once, and test against it
	$(call ready,test)
	@$(BIN)/python scripts/peers.py
	@TREADLE_PEERS=1 $(BIN)/python -m pytest tests/peers tests/analyst/test_datacompy.py $(ARGS)

test-browser: ## walk through the page in a real Chromium (apt-get install chromium, or CHROMIUM=/path/to/it)
	$(call ready,test browser)
	@TREADLE_REQUIRE_BROWSER=1 $(BIN)/python -m pytest tests/browser $(ARGS)

kills: ## kill processes in the middle of runs, take the runs up again, count what it cost
	$(call ready,test)
	@$(BIN)/python scripts/kills.py --kills $(KILLS) --first $(FIRST) $(if $(SEED),--seed $(SEED))

simulate: ## simulate processes that die, stand still and get in each other's way, SEEDS of them or one SEED
	$(call ready,test)
	@$(BIN)/python scripts/simulate.py --seeds $(SEEDS) --first $(FIRST) $(if $(SEED),--seed $(SEED))

properties: ## try every property of runs, contexts, servers and the analyst on DEPTH times as many generated examples
	$(call ready,test)
	@PROPERTY_DEPTH=$(DEPTH) $(BIN)/python -m pytest -q -n auto --maxprocesses 8 tests/properties tests/context \
	tests/analyst tests/serve/test_serve_worlds.py tests/serve/test_serve_worlds_posted.py tests/serve/test_serve_conversing.py $(ARGS)

claims: ## judge every claim of comparisons of generated tables by an oracle in plain Python
	$(call ready,test)
	@TREADLE_CLAIMS=$(PAIRS) TREADLE_CLAIMS_SEED=$(or $(SEED),0) $(BIN)/python -m pytest -q -n auto --maxprocesses 8 \
	tests/analyst/test_claims.py $(ARGS)

dressed: ## compare generated tables as they are, and as people have them: mapped, converted, spelled otherwise
	$(call ready,test)
	@TREADLE_DRESSED=$(PAIRS) TREADLE_DRESSED_SEED=$(or $(SEED),0) $(BIN)/python -m pytest -q -n auto --maxprocesses 8 \
	tests/analyst/test_dressed.py $(ARGS)

differential: ## ask every engine the same generated questions, and plain Python too
	$(call ready,test)
	@TREADLE_DIFFERENTIAL=$(CASES) TREADLE_DIFFERENTIAL_SEED=$(or $(SEED),0) $(BIN)/python -m pytest -q -n auto \
	--maxprocesses 8 tests/analyst/traps/test_differential.py $(ARGS)

workers: ## drive runs with three workers, kill one, stop one, and see that all end and none twice
	$(call ready,test)
	@$(BIN)/python scripts/workers.py --runs $(RUNS)

load: ## CLIENTS of the server on LIVE runs, or for SOAK seconds; see that each client's log is the journal
	$(call ready,test)
	@$(BIN)/python scripts/load.py --clients $(CLIENTS) --runs $(LIVE) --soak $(SOAK)

mutants: ## change the kernel, the door and the purse in small ways, and see whether a test notices
	$(call ready,test mutants)
	@$(BIN)/python scripts/mutants.py --sample $(SAMPLE) $(OF)

check: ## formatting, lint, strict types, import contracts, no imports in a circle
	$(call ready,lint)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/circles.py

web: ## build the page in web/ into src/treadle/serve/page (needs Node)
	@"$(PYTHON)" scripts/page.py build

check-web: ## see that the page in src/treadle/serve/page is what web/ builds; skipped where there is no Node
	@"$(PYTHON)" scripts/page.py check

bench: ## the benchmarks, or BENCH=bench/loop.py
	$(call ready,)
	@for bench in $(BENCH); do echo "$$ python $$bench"; $(BIN)/python "$$bench" || exit 1; done

docs: ## build the documentation into site/
	$(call ready,docs)
	$(BIN)/zensical build --clean --strict

diagram: ## draw docs/loop.svg from the kernel's table of transitions
	$(call ready,)
	$(BIN)/python scripts/diagram.py

lock: ## choose the newest versions that pyproject.toml allows, into constraints.txt
	$(call ready,lock)
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --all-extras --group dev \
	    --custom-compile-command "make lock" --output-file constraints.txt pyproject.toml

clean: ## remove everything that can be made again
	rm -rf .venv .venv.log .venv.lock web/node_modules site build dist mutants .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	    .import_linter_cache
	find src tests bench examples docs scripts -name __pycache__ -type d -prune -exec rm -rf {} +
