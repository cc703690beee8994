# The two commands: `make demo` and `make test`. Each does all set-up first.
PYTHON ?= python3
comma := ,
# The Python of `make test-next`: LeRobot 0.6 needs 3.12, 0.4 runs on what is older.
PYTHON_NEXT ?= python3.12
# A small environment for locomotion and the tools, and one with everything, manipulation included.
VENV ?= .venv
VENV_ALL ?= .venv-all
VENV_NEXT ?= .venv-next
# MuJoCo Warp needs a newer MuJoCo than LIBERO runs on: an environment of its own.
VENV_GPU ?= .venv-gpu
# The documentation is built from the source, without torch.
VENV_DOCS ?= .venv-docs
BIN := $(VENV)/bin
ALL := $(VENV_ALL)/bin
# What LeRobot's commands find us by.
PLUGINS := plugins/lerobot_policy_prism plugins/lerobot_robot_prism_so101
# An environment is rebuilt when, and only when, the dependency files change: by their content, not by
# their dates, which a fresh clone renews.
hash = $(shell cat pyproject.toml $(PLUGINS:%=%/pyproject.toml) $(1) | sha256sum | cut -c1-16)
CONSTRAINTS_ALL := constraints-all-$(shell $(PYTHON) -c 'import sys; print("3.11" if sys.version_info < (3, 12) else "3.12")').txt
READY := $(VENV)/.ready-$(call hash,constraints.txt)
READY_GPU := $(VENV_GPU)/.ready-$(call hash,constraints.txt)
READY_DOCS := $(VENV_DOCS)/.ready-$(call hash,constraints-docs.txt)
DOCS := $(shell sed -n 's/^docs = \[\(.*\)\]$$/\1/p' pyproject.toml | tr -d ,)
READY_ALL := $(VENV_ALL)/.ready-$(call hash,$(CONSTRAINTS_ALL))
# One process a core and one torch thread each: more only fight each other.
JOBS ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 2)

.PHONY: help setup setup-all demo physics test test-next test-fast test-light test-gpu faults check format docs bench release-check clean python-next

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# $(call install,environment,constraints,what): make an environment and install into it.
define install
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 10) else f"prism needs Python 3.10 or newer, {sys.executable} is {v.major}.{v.minor}. Try: make PYTHON=python3.12")'
	@test -x $(1)/bin/python || $(PYTHON) -m venv $(1) || { echo "Could not make a virtual environment. On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	@echo "Installing into $(1) (once; $(4))"
	@$(1)/bin/pip install --quiet --disable-pip-version-check -c $(2) $(3)
	@rm -f $(1)/.ready-* && touch $@
endef

# $(call relink,environment,packages): a reused environment may still point at another checkout.
define relink
	@test "$$(cd /tmp && $(abspath $(1))/bin/python -c 'import prism_motor, os; print(os.path.realpath(prism_motor.__path__[0]))' 2>/dev/null)" = "$$(realpath src/prism_motor)" \
	  || $(1)/bin/pip install --quiet --disable-pip-version-check --no-deps $(2)
endef

$(READY):
	$(call install,$(VENV),constraints.txt,-e '.[test]',a few minutes)

$(READY_GPU):
	$(call install,$(VENV_GPU),constraints.txt,-e '.[gpu]' pytest,a few minutes)

$(READY_DOCS):
	$(call install,$(VENV_DOCS),constraints-docs.txt,$(DOCS),a minute)

$(READY_ALL):
	$(call install,$(VENV_ALL),$(CONSTRAINTS_ALL),-e '.[all$(comma)test]' $(PLUGINS:%=-e %),ten minutes and 10 GB)

setup: $(READY)  ## Install locomotion and the tools into .venv
	$(call relink,$(VENV),-e .)

setup-all: $(READY_ALL)  ## Install everything, LeRobot and LIBERO included, into .venv-all
	$(call relink,$(VENV_ALL),-e . $(PLUGINS:%=-e %))

demo: setup  ## PRISM and an MLP learn to walk; ends with a page with videos (6 and a half minutes on two idle cores)
	$(BIN)/prism demo --out outputs/demo

physics: setup  ## Learn physics from first-order signals and show the result (3 minutes)
	$(BIN)/prism physics --out outputs/physics

test: setup-all  ## Run all tests
	$(ALL)/python -m pytest -n $(JOBS) --dist worksteal

test-next: python-next  ## Run all tests with Python 3.12 and LeRobot 0.6, in .venv-next
	$(MAKE) test PYTHON=$(PYTHON_NEXT) VENV_ALL=$(VENV_NEXT)

python-next:
	@$(PYTHON_NEXT) -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null \
	  || { echo "make test-next needs Python 3.12 or newer, and $(PYTHON_NEXT) is none. Try: make test-next PYTHON_NEXT=/path/to/python3.12"; exit 1; }

test-fast: setup-all  ## Run the tests that take no more than a few seconds each
	$(ALL)/python -m pytest -n $(JOBS) --dist worksteal -m "not slow"

test-light: setup  ## Run the tests that need no LeRobot, in the small environment
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

test-gpu: $(READY_GPU)  ## Run the tests of the gpu engine on the CPU, in .venv-gpu; kernels are compiled once
	$(call relink,$(VENV_GPU),-e .)
	WARP_CACHE_PATH=$(abspath $(VENV_GPU))/kernels $(VENV_GPU)/bin/python -m pytest tests/warp

faults: setup-all  ## The whole fault suite (35 minutes); ends with a table
	PRISM_FAULTS=all $(ALL)/python -m pytest -n $(JOBS) --dist worksteal tests/faults

check: setup-all  ## Format and lint (ruff), types (pyright), layering (import-linter)
	$(ALL)/ruff format --check .
	$(ALL)/ruff check .
	$(ALL)/pyright --pythonpath $(ALL)/python
	$(ALL)/lint-imports --no-logo

format: setup  ## Format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(READY_DOCS)  ## Build the documentation into site/; open site/index.html
	NO_MKDOCS_2_WARNING=1 $(VENV_DOCS)/bin/mkdocs build --strict --quiet

bench: setup  ## Measure the layer against its floor and its alternatives (about 5 minutes)
	$(BIN)/python benchmarks/layer.py

release-check:  ## Build wheel and sdist, and try them extra by extra in empty environments
	.ci/release-check

clean:  ## Remove the environment and what was generated
	rm -rf $(VENV) $(VENV_ALL) $(VENV_NEXT) $(VENV_GPU) $(VENV_DOCS) outputs build dist site src/*.egg-info .pytest_cache .ruff_cache .hypothesis
