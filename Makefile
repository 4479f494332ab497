# debate-rl. `make` alone lists the targets.

# any Python 3.11 to 3.13; it is only used to create .venv
PYTHON ?= python3
# test workers; each uses one thread
JOBS ?= 2

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install data test check lint types format reproduce reproduce-full judges report bench wheel clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1|\2/' | while IFS='|' read -r name text; do printf '  make %-16s %s\n' "$$name" "$$text"; done

install: $(STAMP) ## create .venv and install debate-rl with its pinned dependencies
# --no-compile halves the time: most modules of the dependencies are never imported, the others are compiled when they are
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
	    { echo "debate-rl needs Python 3.11 to 3.13: name one with 'make install PYTHON=python3.11'" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

data: install ## fetch and verify MNIST and Fashion-MNIST into the user's cache
	$(BIN)/debate-rl data dataset=mnist
	$(BIN)/debate-rl data dataset=fashion_mnist

test: install ## run the whole test suite
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) --durations=10

check: lint types ## lint, check formatting and types

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The two top-level folders are installed inside the package, so the checker sees a copy laid out as users import it.
types: install
	@rm -rf build/types && mkdir -p build/types
	@cp -Rp debate_rl build/types/debate_rl && cp -Rp envs build/types/debate_rl/envs
	cd build/types && $(CURDIR)/$(BIN)/mypy --config-file $(CURDIR)/pyproject.toml --cache-dir $(CURDIR)/.mypy_cache -p debate_rl

format: install ## format the code and fix what ruff can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

reproduce: install ## play the sparse-pixel debate on test images and print our table beside the paper's (12 minutes on two cores)
	$(BIN)/debate-rl reproduce

reproduce-full: install ## the same at the paper's size: all 10,000 test images; stop and resume it freely
	$(BIN)/debate-rl reproduce experiment=full

judges: install ## train the shipped judges anew
	$(BIN)/debate-rl judge action=train judge=mlp-6
	$(BIN)/debate-rl judge action=train judge=mlp-4

report: install ## write the report of the last run anew
	$(BIN)/debate-rl report

bench: install ## measure rollouts per second
	$(BIN)/debate-rl bench

wheel: install ## build the wheel into dist/
	@rm -rf build/lib build/bdist.*
	$(BIN)/python -m build --wheel

clean: ## remove what was built (the environment, the outputs and the data stay)
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find debate_rl envs tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +
