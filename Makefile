# Every target sets itself up: a Python 3.10+ interpreter and a Rust toolchain are all that must be there.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := Cargo.toml Cargo.lock pyproject.toml $(shell find src crates -type f)
SOURCES := $(CORE) README.md $(shell find python -type f -not -name '*.so' -not -path '*/__pycache__/*')
# What is installed in the environment: $(VENV)/wheel, or $(VENV)/develop for the fast loop.
INSTALLED ?= $(VENV)/wheel
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help

help:  ## This list.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

demo: $(VENV)/wheel  ## Build, install, and release a private median of the bundled data.
	$(BIN)/python examples/quickstart.py

dev: $(VENV)/develop  ## The package as it lies here, in the environment: only changes of the core need this again.

quick: $(VENV)/tools $(VENV)/develop  ## The fast loop, at most two minutes: fast tests of both languages, and lints.
	cargo test --quiet --lib
	$(MAKE) lint INSTALLED=$(VENV)/develop
	$(BIN)/python -m pytest -n auto -m 'not slow'

test: $(VENV)/tools $(VENV)/wheel  ## Everything that CI runs.
	cargo test --quiet
	$(MAKE) lint
	$(BIN)/python -m pytest

lint: $(VENV)/tools $(INSTALLED)  ## Formatting, lints (of the benches, too), types, stubs and schemas; warnings are errors.
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest dpmedian._core
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff
	if command -v actionlint > /dev/null; then actionlint; fi  # The workflow `test` brings it; PyPI has no wheel of it.

# zig, found on the path, links against the symbols of an old C library, so that old systems take the wheel.
wheel: $(VENV)/tools  ## A checked manylinux wheel and a source distribution, in dist/.
	rm -rf dist
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/maturin build --release --quiet --zig --compatibility manylinux_2_17 --out dist
	$(BIN)/maturin sdist --out dist
	$(BIN)/auditwheel show dist/*.whl
	$(BIN)/python tests/check_distribution.py dist

bench: $(VENV)/tools $(VENV)/wheel  ## Benches of the kernels, and ratios against the peers in one run.
	cargo bench
	$(BIN)/python benches/compare.py
	$(BIN)/python benches/scaling.py

gauntlet: $(VENV)/tools $(VENV)/wheel  ## Accuracy of the default method, with intervals.
	$(BIN)/python benches/gauntlet.py

calibration: $(VENV)/tools $(VENV)/wheel  ## Predicted against measured error and failure of the default method.
	$(BIN)/python benches/calibration.py

gauntlet-long: $(VENV)/tools $(VENV)/wheel  ## No silent garbage: thousands of small runs, hours.
	$(BIN)/python benches/gauntlet.py --long

audit: $(VENV)/tools $(VENV)/wheel  ## Claimed against measured privacy, of every mechanism and method.
	$(BIN)/python tests/audit.py

mutants: $(VENV)/tools $(VENV)/wheel  ## Ways to lose privacy by a small change, each caught by a named test.
	$(BIN)/python tests/mutants/run.py

docs: $(VENV)/tools $(VENV)/wheel  ## The documentation, in docs/_build; warnings are errors.
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build

transcripts: $(VENV)/tools $(VENV)/wheel  ## Run the code in README and docs and write its outputs and pictures anew.
	$(BIN)/python tests/transcripts.py
	$(BIN)/python docs/pictures.py

tables: $(VENV)/tools $(VENV)/wheel  ## Write the tables of the page of benchmarks anew; PEERS=DIRECTORY for the peers.
	$(BIN)/python benches/gauntlet.py --runs 200 > docs/tables/gauntlet.md
	$(BIN)/python benches/scaling.py > docs/tables/scaling.md
	$(BIN)/python benches/theorem.py > docs/tables/theorem.md
	$(BIN)/python benches/successor.py > docs/tables/successor.md
	$(BIN)/python benches/compare.py $(if $(AUTHORS),--authors "$(AUTHORS)") > docs/tables/speed.md
	if [ -n "$(PEERS)" ]; then $(BIN)/python benches/peers.py "$(PEERS)" > docs/tables/peers.md; fi
	if [ -n "$(CLUSTERERS)" ]; then \
	  $(BIN)/python benches/clusters.py $(CLUSTERERS) --sizes 10000 > docs/tables/clusters.md; \
	  $(BIN)/python benches/clusters.py $(CLUSTERERS) --sizes 2000 --runs 3 > docs/tables/clusters-few.md; \
	fi
	$(BIN)/python benches/clusters.py --real --runs 12 --epsilons 0.5,1,2 > docs/tables/clusters-real.md
	$(BIN)/python benches/axes.py --runs 30 > docs/tables/axes.md

# Ray, which only this needs, is heavy: it is installed here and not with the tests.
flower: $(VENV)/tools $(VENV)/wheel  ## The simulation of the Flower strategy: writes its table and its picture anew.
	$(PIP) install 'flwr[simulation]' -c tests/constraints.txt
	cd docs/pictures && $(CURDIR)/$(BIN)/python ../../examples/flower_simulation.py 1 > ../tables/flower.txt

venv: $(VENV)/tools  ## The environment of the tests.

pins: $(VENV)/tools  ## Write the exact versions of the test dependencies anew.
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

$(VENV)/tools: $(VENV)/base tests/requirements.in tests/constraints.txt
	$(PIP) install -r tests/requirements.in -c tests/constraints.txt
	touch $@

# The wheel and the editable installation replace each other, so each takes the other's mark away before it starts.
$(VENV)/develop: $(VENV)/tools $(CORE)
	rm -f $(VENV)/wheel
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --quiet
	touch $@

# The tests of CI run against the installed wheel, never against the source tree.
$(VENV)/wheel: $(VENV)/base $(SOURCES)
	rm -rf $(VENV)/develop target/wheels
	$(BIN)/maturin build --release --quiet --out target/wheels
	$(PIP) install --force-reinstall --no-deps target/wheels/*.whl
	$(PIP) install 'numpy>=1.24' -c tests/constraints.txt
	touch $@

.PHONY: help demo dev quick test lint wheel bench gauntlet gauntlet-long calibration audit mutants docs transcripts tables flower venv pins clean
