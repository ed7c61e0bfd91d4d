# Everything runs in a plain virtual environment in .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check bench wheel sanitize clean

demo: .venv/.installed        ## train, plan, diagnose, repair and report, on embedded data
	@$(BIN)/oddslip demo

test: .venv/.developing       ## all tests
	@$(BIN)/python -m pytest -n 2

check: .venv/.developing      ## lint, format and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: .venv/.developing      ## speed against peers, in one run
	@$(BIN)/python -m benchmarks

wheel:                        ## sdist and wheel, checked, and tried in a clean environment
	@tools/try_wheel.sh $(PYTHON)

sanitize:                     ## tests on kernels that check every index and every address
	@tools/sanitize.sh $(PYTHON)

clean:
	rm -rf .venv .wheel demo-report build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .bench
	rm -rf src/oddslip/kernels/*.so src/oddslip/kernels/*.pyd src/oddslip/kernels/avx2

.venv/.installed: pyproject.toml
	@echo "Setting up .venv (a minute or two, once) ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[lightgbm]"
	@touch $@

.venv/.developing: .venv/.installed
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@
