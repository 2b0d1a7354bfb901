# Each command sets up what it needs in .venv, once.
PYTHON ?= python3
BIN := .venv/bin

# Minutes that `make fuzz` takes; FUZZ=--checked makes compiled code check each index.
MINUTES ?= 60

.PHONY: demo test test-all fuzz bench errors compare clean

demo: .venv/.installed-cli
	$(BIN)/onebit demo

test: .venv/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2 --dist worksteal -m "not slow"

test-all: .venv/.installed-dev
	$(BIN)/pytest -n 2 --dist worksteal

fuzz: .venv/.installed-dev
	PYTHONPATH=tests $(BIN)/python -m fuzz --minutes $(MINUTES) $(FUZZ)

bench: .venv/.installed-bench
	$(BIN)/python bench/bench.py

errors: .venv/.installed-bench
	$(BIN)/python bench/errors.py

compare: .venv/.installed-bench
	$(BIN)/python bench/compare.py

clean:
	rm -rf .venv build dist .fuzz-cache .hypothesis .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "onebit needs Python 3.11 or later: make PYTHON=...")'
	$(PYTHON) -m venv .venv

.venv/.installed-%: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --constraint constraints.txt --editable '.[$*]'
	touch $@
