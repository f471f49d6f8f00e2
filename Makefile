# geoflux: everything from a fresh clone. `make run`, `make test`, `make check`, `make bench`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
OUT ?= out
WORKERS ?= 2

.PHONY: run test test-slow check lint types layers bench clean setup java browser

run: setup
	rm -rf $(OUT)
	$(BIN)/geoflux run examples/demo.toml --out $(OUT)

test: setup browser
	$(BIN)/python -m pytest -m "not slow" -n $(WORKERS) --dist worksteal

test-slow: setup
	$(BIN)/python -m pytest -m slow

check: setup lint types layers test

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/lint-imports

bench: setup
	$(BIN)/geoflux bench engine

setup: java $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "geoflux needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(READY)

java:
	@sh scripts/java.sh

browser:
	@sh scripts/chromium.sh

clean:
	rm -rf $(VENV) $(OUT) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
