# The two commands: `make demo` and `make test`. Each does all set-up first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# The environment is rebuilt when, and only when, the dependency files change.
DEPENDENCIES := $(shell cat pyproject.toml constraints.txt | sha256sum | cut -c1-16)
READY := $(VENV)/.ready-$(DEPENDENCIES)
# One process a core and one torch thread each: more only fight each other.
JOBS ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 2)

.PHONY: help setup demo physics test test-fast check format docs bench clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 10) else f"prism needs Python 3.10 or newer, {sys.executable} is {v.major}.{v.minor}. Try: make PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "Could not make a virtual environment. On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	@echo "Installing into $(VENV) (once; a few minutes)"
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	@rm -f $(VENV)/.ready-* && touch $@

setup: $(READY)  ## Install everything into .venv
	@# A reused environment may still point at another checkout of this repository.
	@test "$$(cd /tmp && $(abspath $(BIN))/python -c 'import prism, os; print(os.path.realpath(prism.__path__[0]))' 2>/dev/null)" = "$$(realpath src/prism)" \
	  || $(BIN)/pip install --quiet --disable-pip-version-check --no-deps -e .

demo: setup  ## Two policies learn to walk, a trained one shows how; ends with a page (8 minutes)
	$(BIN)/prism demo --out outputs/demo

physics: setup  ## Learn physics from first-order signals and show the result (3 minutes)
	$(BIN)/prism physics --out outputs/physics

test: setup  ## Run all tests
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

test-fast: setup  ## Run the tests that take no more than a few seconds each
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not slow"

check: setup  ## Format and lint (ruff), types (pyright), layering (import-linter)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports --no-logo

format: setup  ## Format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: setup  ## Build the documentation into site/
	$(BIN)/pip install --quiet -c constraints.txt -e ".[docs]"
	$(BIN)/mkdocs build --strict

bench: setup  ## Measure the layer against its floor and its alternatives (about 5 minutes)
	$(BIN)/python benchmarks/layer.py

clean:  ## Remove the environment and what was generated
	rm -rf $(VENV) outputs build dist src/*.egg-info .pytest_cache .ruff_cache .hypothesis
