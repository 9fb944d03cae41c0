# Every target sets itself up: a Python 3.10+ interpreter and a Rust toolchain are all that must be there.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := Cargo.toml Cargo.lock pyproject.toml README.md $(shell find src python -type f -not -name '*.so' -not -path '*/__pycache__/*')
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help

help:  ## This list.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

demo: $(VENV)/wheel  ## Build, install, and release a private median of the bundled data.
	$(BIN)/python examples/quickstart.py

test: $(VENV)/dev $(VENV)/wheel  ## Everything that CI runs.
	cargo test --quiet
	cargo bench --no-run --quiet
	$(MAKE) lint
	$(BIN)/python -m pytest

lint: $(VENV)/dev $(VENV)/wheel  ## Formatting, lints, types and stubs; warnings are errors.
	cargo fmt --check
	cargo clippy --quiet --all-targets --features python -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest dpmedian._core

# zig, found on the path, links against the symbols of an old C library, so that old systems take the wheel.
wheel: $(VENV)/dev  ## A checked manylinux wheel and a source distribution, in dist/.
	rm -rf dist
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/maturin build --release --quiet --zig --compatibility manylinux_2_17 --out dist
	$(BIN)/maturin sdist --out dist
	$(BIN)/auditwheel show dist/*.whl
	$(BIN)/python tests/check_distribution.py dist

bench: $(VENV)/dev $(VENV)/wheel  ## Benches of the kernels, and ratios against the peers in one run.
	cargo bench
	$(BIN)/python benches/compare.py
	$(BIN)/python benches/scaling.py

gauntlet: $(VENV)/dev $(VENV)/wheel  ## Accuracy of the default method, with intervals.
	$(BIN)/python benches/gauntlet.py

calibration: $(VENV)/dev $(VENV)/wheel  ## Predicted against measured error and failure of the default method.
	$(BIN)/python benches/calibration.py

gauntlet-long: $(VENV)/dev $(VENV)/wheel  ## No silent garbage: thousands of small runs, hours.
	$(BIN)/python benches/gauntlet.py --long

audit: $(VENV)/dev $(VENV)/wheel  ## Claimed against measured privacy, of every mechanism and method.
	$(BIN)/python tests/audit.py

mutants: $(VENV)/dev $(VENV)/wheel  ## Ways to lose privacy by a small change, each caught by a named test.
	$(BIN)/python tests/mutants/run.py

docs: $(VENV)/dev $(VENV)/wheel  ## The documentation, in docs/_build; warnings are errors.
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build

transcripts: $(VENV)/dev $(VENV)/wheel  ## Run the code in README and docs and write its outputs and pictures anew.
	$(BIN)/python tests/transcripts.py
	$(BIN)/python docs/pictures.py

venv: $(VENV)/dev  ## The environment of the tests.

pins: $(VENV)/dev  ## Write the exact versions of the test dependencies anew.
	$(PIP) install --upgrade --upgrade-strategy eager -r tests/requirements.in
	{ echo '# Exact versions of the test dependencies, written by `make pins`. Older interpreters take what they can install.'; \
	  $(PIP) freeze --exclude dpmedian | sed 's/$$/ ; python_version >= "3.11"/'; } > tests/constraints.txt

clean:  ## Remove what was built.
	rm -rf $(VENV) target dist

# The interpreter's environment with what building a wheel needs, and no more: enough for the demo.
$(VENV)/base:
	$(PYTHON) -m venv $(VENV)
	$(PIP) install maturin -c tests/constraints.txt
	touch $@

$(VENV)/dev: $(VENV)/base tests/requirements.in tests/constraints.txt
	$(PIP) install -r tests/requirements.in -c tests/constraints.txt
	touch $@

# The tests run against the installed wheel, never against the source tree.
$(VENV)/wheel: $(VENV)/base $(SOURCES)
	rm -rf target/wheels
	$(BIN)/maturin build --release --quiet --out target/wheels
	$(PIP) install --force-reinstall --no-deps target/wheels/*.whl
	$(PIP) install 'numpy>=1.24' -c tests/constraints.txt
	touch $@

.PHONY: help demo test lint wheel bench gauntlet gauntlet-long calibration audit mutants docs transcripts venv pins clean
