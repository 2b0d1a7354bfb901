# Each command sets up what it needs in .venv, once.
PYTHON ?= python3
BIN := .venv/bin

# Tests start many processes: modules that were read once are stored as bytecode for the next.
unexport PYTHONDONTWRITEBYTECODE

# The tests: `make quick` is what to run after every edit, `make test` before every merge,
# `make test-all` adds the long proofs, marked slow: a million rounds of every form, a hundred
# thousand draws, many seeds, large data sets. tests/conftest.py says how two processes share them.
# Two processes have two cores: threads of BLAS, which wait in loops, would only take turns on them.
# Of plugins that are installed, pytest would rewrite all assertions, those of Hypothesis too.
PYTEST := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 \
    $(BIN)/pytest -p xdist -n 2 --dist loadgroup --no-loadscope-reorder
QUICK := tests/core tests/features tests/numerics tests/theory/test_losses.py tests/test_promises.py \
    tests/test_rooms.py tests/learners/test_banditron.py tests/learners/test_perceptron.py \
    $(patsubst %,--ignore=tests/core/test_%.py,compiling skops state storage threads)

# What `make serve-drill` does besides killing a service on SQLite: DRILL=--postgres.
DRILL ?=

# Processes of the service that `make serve-fuzz` sends requests to; several use PostgreSQL.
WORKERS ?= 1

# Minutes that `make fuzz` takes; FUZZ=--checked makes compiled code check each index.
MINUTES ?= 60

# What `make mutants` draws: how many changes of the code, and by which seed.
NUMBER ?= 200
SEED ?= 3

.PHONY: demo lint quick test compiles-little not-slow test-plain oldest newest test-all wheel fuzz mutants bench speed bakeoff clean
.PHONY: accidents alarms boosting clicks compare compare-drift constants errors intervals labels limits logs raw
.PHONY: docs docs-links pictures coverage release-check start-check
.PHONY: serve-demo serve-load serve-soak serve-models serve-drill serve-stream serve-fuzz

demo: .venv/.installed-cli
	@$(BIN)/python tools/demo.py

lint: .venv/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The types are checked on one core while the tests start.
quick: .venv/.installed-dev
	$(MAKE) --no-print-directory --jobs 2 lint compiles-little

test: .venv/.installed-dev
	$(MAKE) --no-print-directory --jobs 2 lint not-slow

compiles-little: .venv/.installed-dev
	$(PYTEST) -m "not slow and not compiles" $(QUICK)

not-slow: .venv/.installed-dev
	$(PYTEST) -m "not slow"

# All tests without what is private to Numba (core/fence.py); the daily tests run a part of it.
test-plain: .venv/.installed-dev
	ONEBIT_NUMBA=plain $(PYTEST) -m "not slow"

# The core and the README with the oldest versions that pyproject.toml allows, and with the newest
# ones there are, without constraints. Each in a virtual environment of its own.
oldest: FLOORS = $$($(PYTHON) tools/floors.py)
oldest newest:
	$(PYTHON) -m venv --clear .venv-$@
	.venv-$@/bin/python -m pip install --quiet --disable-pip-version-check --upgrade \
	    --editable '.[serve]' $(FLOORS) hypothesis pandas 'pytest<9.2' pytest-xdist skops
	.venv-$@/bin/python -m pip list --disable-pip-version-check | \
	    grep -E '^(llvmlite|numba|numpy|pandas|safetensors|scikit-learn|scipy) '
	$(subst $(BIN)/,.venv-$@/bin/,$(PYTEST)) -m "not slow and not compiles" tests/core README.md

test-all: lint
	$(PYTEST)

fuzz: .venv/.installed-dev
	PYTHONPATH=tests $(BIN)/python -m fuzz --minutes $(MINUTES) $(FUZZ)

mutants: .venv/.installed-dev
	PYTHONPATH=tests $(BIN)/python -m mutants --number $(NUMBER) --seed $(SEED) --jobs 2

# A wheel with machine code for this Python, Numba and architecture; and how it starts.
wheel: .venv/.installed-cli
	$(BIN)/python tools/machine_code.py build/machine_code
	rm -rf dist
	ONEBIT_WHEEL_CODE=build/machine_code $(BIN)/python -m pip wheel --quiet \
	    --disable-pip-version-check --no-deps --wheel-dir dist .
	$(BIN)/python tools/wheel_check.py dist/onebit-*.whl

# The site, in build/site: every link in it is checked. docs-links follows those to other hosts.
docs: .venv/.installed-docs
	$(BIN)/python tools/docs/build.py

docs-links: docs
	$(BIN)/sphinx-build -q -b linkcheck -c tools/docs build/docs build/links

# The pictures of README and of the site; some run Vowpal Wabbit, two need ONEBIT_DATA.
pictures: .venv/.installed-bench .venv/.installed-dev
	$(BIN)/python tools/pictures.py

# Lines and branches outside of compiled code that the tests reach: of the package, or of some rooms
# by their own tests, as in ROOMS="streams features".
ROOMS ?=

coverage: .venv/.installed-dev
	rm -f .coverage .coverage.*
	$(subst $(BIN)/pytest,$(BIN)/coverage run -m pytest,$(PYTEST)) -m "not slow" $(ROOMS:%=tests/%)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report $(if $(ROOMS),--include="$$(printf '*/onebit/%s/*,' $(ROOMS))")

# Wheel and source distribution, and how they do in clean environments of every Python at hand;
# KEEP=dist keeps them.
release-check: .venv/bin/python
	$(BIN)/python tools/release_check.py $(if $(KEEP),--keep $(KEEP))

# Getting started as a new user follows it, with a wheel alone: how long each part takes.
start-check: wheel
	$(BIN)/python tools/start_check.py dist/onebit-*.whl

bench: .venv/.installed-bench
	$(BIN)/python bench/bench.py

# The time of a round beside a rival's, and beside those of older versions: fails if it grew.
speed: .venv/.installed-bench
	OPENBLAS_NUM_THREADS=1 $(BIN)/python bench/speed.py --check

# Experiments of the laboratory, at full scale; LAB=--seeds=1 or LAB="--streams letter,poker" for less.
LAB ?=

accidents alarms boosting clicks compare constants errors intervals labels limits logs raw: .venv/.installed-bench
	$(BIN)/onebit lab run $@ --scale full $(LAB)
	$(BIN)/onebit lab show $@ --scale full

compare-drift: .venv/.installed-bench
	$(BIN)/onebit lab run drift --scale full $(LAB)
	$(BIN)/onebit lab show drift --scale full

bakeoff: .venv/.installed-bench
	$(BIN)/onebit lab run bakeoff --scale full $(LAB)
	$(BIN)/onebit lab show bakeoff --scale full --write-page docs/comparison.md

serve-demo: .venv/.installed-serve
	$(BIN)/onebit serve --demo

serve-load: .venv/.installed-bench
	$(BIN)/python bench/serve_load.py --postgres

serve-soak: .venv/.installed-bench
	$(BIN)/python bench/serve_load.py --only sqlite --turns 1 --soak 600

serve-models: .venv/.installed-bench
	$(BIN)/python bench/serve_models.py

serve-drill: .venv/.installed-dev
	$(BIN)/python bench/serve_drill.py --rows 100000 $(DRILL)

serve-stream: .venv/.installed-dev
	$(BIN)/python bench/serve_stream.py

serve-fuzz: .venv/.installed-fuzz .venv/.installed-dev
	$(BIN)/python bench/serve_fuzz.py --workers $(WORKERS)
	$(BIN)/python bench/serve_schema.py --workers $(WORKERS)

clean:
	rm -rf .venv .venv-oldest .venv-newest .coverage build dist .fuzz-cache .mutants .hypothesis .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "onebit needs Python 3.11 or later: make PYTHON=...")'
	@echo "making .venv"
	@(while sleep 2; do printf .; done) & dots=$$!; \
	$(PYTHON) -m venv .venv; status=$$?; kill $$dots; exit $$status

# pip is silent while it unpacks: a dot every two seconds says that it is at work.
.venv/.installed-%: pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing onebit[$*] into .venv, which takes a minute"
	@(while sleep 2; do printf .; done) & dots=$$!; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --constraint constraints.txt --editable '.[$*]'; \
	status=$$?; kill $$dots; echo; exit $$status
	@touch $@
