# Every target installs what it needs. Only a Python interpreter (3.10 or newer) and a Rust toolchain must be there.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := Cargo.toml Cargo.lock pyproject.toml $(shell find src crates -type f)
SOURCES := $(CORE) README.md $(shell find python -type f -not -name '*.so' -not -path '*/__pycache__/*')
# The build that is installed in the environment: $(VENV)/wheel, $(VENV)/release with all optimizations, or $(VENV)/develop.
INSTALLED ?= $(VENV)/wheel
# Tests run in several processes, so linear algebra has one thread in each.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help

help:  ## List the targets.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

demo: $(VENV)/wheel  ## Build and install the package, and release a private median of the bundled data.
	$(BIN)/python examples/quickstart.py

dev: $(VENV)/develop  ## Install the package in editable mode. Run this again after a change of the core.

quick: $(VENV)/tools $(VENV)/develop $(VENV)/core-tested  ## Run the fast tests of the parts that changed, and the lints.
	$(MAKE) lint INSTALLED=$(VENV)/develop
	$(PYTEST) -m 'not slow'

test: $(VENV)/tools $(VENV)/wheel  ## Run everything that CI runs.
	cargo test --quiet --lib
	$(MAKE) lint
	$(PYTEST)

lint: $(VENV)/tools $(INSTALLED) $(VENV)/linted-core $(VENV)/linted-stubs $(VENV)/linted-forms  ## Check formatting, lints, types, stubs and schemas. Warnings are errors.
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	if command -v actionlint > /dev/null; then actionlint; fi  # The workflow `test` brings it; PyPI has no wheel of it.

# Both need the network: the advisories are fetched, and --strict fails if a version is not known. pip-audit has an environment
# of its own, so that its dependencies are not among those that it checks.
dependencies: $(VENV)/base  ## Check the vulnerabilities, licenses and sources of all dependencies.
	cargo deny check  # cargo install --locked cargo-deny
	$(PYTHON) -m venv $(VENV)/audit
	$(VENV)/audit/bin/python -m pip --disable-pip-version-check --quiet install pip-audit==2.10.1
	$(VENV)/audit/bin/pip-audit --strict --disable-pip --no-deps -r tests/constraints.txt

# zig, found on the path, links against the symbols of an old C library, so the wheel works on old systems.
wheel: $(VENV)/tools  ## Build a wheel and a source distribution in dist/, and check them, also with PYTHONS="INTERPRETER ...".
	rm -rf dist
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/maturin build --release --locked --quiet --zig --compatibility manylinux_2_17 --out dist
	$(BIN)/maturin sdist --out dist
	$(BIN)/auditwheel show dist/*.whl
	$(BIN)/python tests/check_distribution.py dist $(PYTHONS)

bench: $(VENV)/tools $(VENV)/release  ## Time the kernels, and compare them with the peers.
	cargo bench
	$(BIN)/python benches/compare.py
	$(BIN)/python benches/scaling.py

gauntlet: $(VENV)/tools $(VENV)/wheel  ## Measure the accuracy of the default method.
	$(BIN)/python benches/gauntlet.py

calibration: $(VENV)/tools $(VENV)/wheel  ## Compare predicted with measured errors and failures of the default method.
	$(BIN)/python benches/calibration.py

gauntlet-long: $(VENV)/tools $(VENV)/wheel  ## Search for silent failures in thousands of small runs, which takes hours.
	$(BIN)/python benches/gauntlet.py --long

audit: $(VENV)/tools $(VENV)/wheel  ## Measure lower bounds on the privacy loss of every mechanism and method.
	$(BIN)/python tests/audit.py

mutants: $(VENV)/tools $(VENV)/wheel  ## Put faults into the code. A named test must find each fault.
	$(BIN)/python tests/mutants/run.py

fuzz: $(VENV)/tools $(VENV)/wheel  ## Try odd arguments and damaged files, audit records and ledgers, which takes minutes.
	OMP_NUM_THREADS=1 $(BIN)/python tests/fuzz.py

stress: $(VENV)/tools $(VENV)/wheel  ## Charge one ledger from eight processes that are killed and disturbed.
	$(BIN)/python tests/stress_ledger.py

docs: $(VENV)/tools $(VENV)/wheel  ## Build the documentation in docs/_build. Warnings are errors.
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build

transcripts: $(VENV)/tools $(VENV)/wheel  ## Run the code in README and docs, and write its outputs and pictures again.
	$(BIN)/python tests/transcripts.py
	$(BIN)/python docs/pictures.py

tables: $(VENV)/tools $(VENV)/release  ## Write the tables of the benchmarks again. PEERS=DIRECTORY includes the peers.
	$(BIN)/python benches/gauntlet.py --runs 200 > docs/tables/gauntlet.md
	$(BIN)/python benches/scaling.py > docs/tables/scaling.md
	$(BIN)/python benches/theorem.py > docs/tables/theorem.md
	$(BIN)/python benches/tune.py --ablate --quick > docs/tables/ablation.md
	$(BIN)/python benches/gauntlet.py --confirm > docs/tables/confirm.md
	$(BIN)/python benches/calibration.py --signal --quick > docs/tables/calibration.md
	$(BIN)/python benches/successor.py > docs/tables/successor.md
	$(BIN)/python benches/compare.py $(if $(AUTHORS),--authors "$(AUTHORS)") > docs/tables/speed.md
	if [ -n "$(PEERS)" ]; then $(BIN)/python benches/peers.py "$(PEERS)" > docs/tables/peers.md; fi
	if [ -n "$(CLUSTERERS)" ]; then \
	  $(BIN)/python benches/clusters.py $(CLUSTERERS) --sizes 10000 > docs/tables/clusters.md; \
	  $(BIN)/python benches/clusters.py $(CLUSTERERS) --sizes 2000 --runs 3 > docs/tables/clusters-few.md; \
	  $(BIN)/python benches/clusters.py $(CLUSTERERS) --sizes 100000 --runs 2 --searches 1 > docs/tables/clusters-many.md; \
	  $(BIN)/python benches/clusters.py $(CLUSTERERS) --sizes 10000 --dimensions 5,64 --clusters 5,20 --epsilons 0.5,2 \
	    --runs 2 --searches 1 > docs/tables/clusters-wide.md; \
	fi
	$(BIN)/python benches/clusters.py --real --runs 12 --epsilons 0.5,1,2 > docs/tables/clusters-real.md
	$(BIN)/python benches/axes.py --runs 30 > docs/tables/axes.md
	cd docs/pictures && $(CURDIR)/$(BIN)/python ../../benches/federated.py logistic mlp --seeds 3 \
	  > ../tables/federated.md  # and its picture
	$(BIN)/python benches/federated.py many cnn budgets cost >> docs/tables/federated.md

# Ray, which only this needs, is heavy: it is installed here and not with the tests.
flower: $(VENV)/tools $(VENV)/wheel  ## Run the simulation of the Flower strategy, and write its table and its picture again.
	$(PIP) install 'flwr[simulation]' scikit-learn -c tests/constraints.txt
	cd docs/pictures && $(CURDIR)/$(BIN)/python ../../examples/flower_simulation.py 1 > ../tables/flower.txt

venv: $(VENV)/tools  ## Make the environment of the tests.

pins: $(VENV)/tools  ## Write the exact versions of the test dependencies again.
	$(PIP) install --upgrade --upgrade-strategy eager --group all
	{ echo '# Exact versions of the test dependencies, written by `make pins`. Older interpreters take what they can install.'; \
	  $(PIP) freeze --exclude dpmedian | sed 's/$$/ ; python_version >= "3.11"/'; } > tests/constraints.txt

clean:  ## Remove everything that was built.
	rm -rf $(VENV) target dist

# The interpreter's environment with what building a wheel needs, and no more: enough for the demo.
$(VENV)/base:
	$(PYTHON) -m venv $(VENV)
	$(PIP) install maturin -c tests/constraints.txt
	touch $@

$(VENV)/tools: $(VENV)/base pyproject.toml tests/constraints.txt
	$(PIP) install 'pip>=25.1'  # Older ones do not know dependency groups.
	$(PIP) install --group all -c tests/constraints.txt
	touch $@

# The tests of the core, if it changed since they passed.
$(VENV)/core-tested: $(VENV)/tools $(CORE)
	cargo test --quiet --lib
	touch $@

# The lints that take seconds although nothing changed: each runs if one of its files did since it passed.
$(VENV)/linted-core: $(VENV)/tools $(CORE) rustfmt.toml $(wildcard benches/*.rs)
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings
	touch $@

$(VENV)/linted-stubs: $(VENV)/tools $(CORE) python/dpmedian/_core.pyi $(INSTALLED)
	$(BIN)/python -m mypy.stubtest dpmedian._core
	touch $@

$(VENV)/linted-forms: $(VENV)/tools CITATION.cff $(wildcard .github/*.yml .github/*/*.yml)
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/zizmor --quiet --offline --strict-collection --persona pedantic .github
	touch $@

# The wheels and the editable installation replace each other, so each takes the others' marks away before it starts.
$(VENV)/develop: $(VENV)/tools $(CORE)
	rm -f $(VENV)/wheel $(VENV)/release
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --quiet
	touch $@

# The tests of CI run against the installed wheel, never against the source tree.
$(VENV)/wheel: PROFILE := fast
$(VENV)/release: PROFILE := release
$(VENV)/wheel $(VENV)/release: $(VENV)/base $(SOURCES)
	rm -rf $(VENV)/develop $(VENV)/wheel $(VENV)/release target/wheels
	$(BIN)/maturin build --profile $(PROFILE) --quiet --out target/wheels
	$(PIP) install --force-reinstall --no-deps target/wheels/*.whl
	$(PIP) install 'numpy>=1.24' -c tests/constraints.txt
	touch $@

.PHONY: help demo dev quick test lint dependencies wheel bench gauntlet gauntlet-long calibration audit mutants fuzz stress docs transcripts tables flower venv pins clean
