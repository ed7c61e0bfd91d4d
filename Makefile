# Everything runs in a plain virtual environment in .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-slow test-all test-spark coverage check docs reproduce minimum bench attack wheel sanitize clean

demo: .venv/.installed        ## train, plan, diagnose, repair and report, on embedded data
	@$(BIN)/oddslip demo

# The tracer of Python 3.12 and newer is the cheap one; older ones have the compiled one.
CORE := $(shell $(PYTHON) -c 'import sys; print("sysmon" if sys.version_info >= (3, 12) else "ctrace")')

test: .venv/.developing       ## the fast tests: all behaviour, in about four minutes
	@$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not slow"

test-slow: .venv/.developing  ## Spark, browser, campaigns, experiments, journeys
	@$(BIN)/python -m pytest -n 2 --dist loadgroup -m "slow"

test-all: test test-slow      ## all tests

test-spark: .venv/.developing ## every law of Spark on every engine, and the slow faults
	@ODDSLIP_SPARK=full $(BIN)/python -m pytest tests/spark

# On 3.11 counting lines costs about 45% more CPU time.
coverage: .venv/.developing   ## all tests, and the share of lines they run
	@COVERAGE_CORE=$(CORE) $(BIN)/python -m pytest -n 2 --dist loadgroup --cov --cov-report=term:skip-covered

check: .venv/.developing      ## lint, format and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

reproduce: .venv/.developing  ## the studies of the paper; python -m experiments STUDY runs one
	@$(BIN)/python -m experiments --help

docs: .venv/.documenting      ## the documentation site, in build/docs
	@$(BIN)/python -m sphinx -W --keep-going -q docs build/docs

minimum:                      ## the fast tests, on the lowest versions that pyproject.toml promises
	@$(PYTHON) tools/minimum.py

bench: .venv/.developing      ## speed against peers, in one run
	@$(BIN)/python -m benchmarks

attack: .venv/.developing     ## campaigns that try to break it, ten minutes; docs/attacks.md
	@$(BIN)/python -m attacks --table docs/attacks.md

.venv/.documenting: .venv/.developing
	@$(call install_extra,docs)
	@touch $@

wheel:                        ## sdist and wheel, checked, and tried in a clean environment
	@tools/try_wheel.sh $(PYTHON)

sanitize: .venv/.developing   ## all tests, on kernels that check every index and every address
	@tools/sanitize.sh $(BIN)/python

clean:
	rm -rf .venv .venv-minimum .wheel .checked .coverage .coverage.* docs/reference docs/examples demo-report build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .bench
	rm -rf src/oddslip/kernels/*.so src/oddslip/kernels/*.pyd src/oddslip/kernels/avx2

# A changed kernel is compiled again; what did not change is not.
KERNELS := setup.py $(wildcard src/oddslip/kernels/*.pyx src/oddslip/kernels/*.pxd)

# What an extra requires, without compiling the kernels once more.
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check
REQUIRED := import sys, tomllib; extras = tomllib.load(sys.stdin.buffer)["project"]["optional-dependencies"]
install_extra = $(BIN)/python -c '$(REQUIRED); print(*extras["$(1)"], sep="\n")' < pyproject.toml \
	| $(INSTALL) --requirement /dev/stdin

.venv/.installed: pyproject.toml $(KERNELS)
	@echo "Setting up .venv (a minute or two, once) ..."
	@$(PYTHON) -m venv .venv
	@$(INSTALL) --editable ".[lightgbm]"
	@touch $@

.venv/.developing: .venv/.installed
	@$(call install_extra,dev)
	@touch $@
