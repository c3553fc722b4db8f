# make demo and make test work on a fresh machine with Python 3.11 to 3.13, pip and make.
# Each set of extras is installed once; a second run goes straight to work.
PYTHON ?= python3
BIN := .venv/bin
DEMO := .venv/.demo
DEV := .venv/.dev
BENCH := .venv/.bench
PYTEST := $(BIN)/pytest -n auto --maxprocesses 8 --dist loadfile --no-loadscope-reorder

.PHONY: demo test test-all fuzz check bench bench-quick clean

demo: $(DEMO)
	$(BIN)/everhash demo

test: $(DEV)
	$(BIN)/python -m everhash.kernels
	$(PYTEST) -m "not slow"

test-all: test
	$(PYTEST) -m slow
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m everhash.kernels
	NUMBA_BOUNDSCHECK=1 $(PYTEST) -m "not slow" tests/unit/kernels tests/unit/index tests/contracts/test_index.py

# fresh cases from every test that draws: make fuzz MINUTES=10, SEED=... to draw the same again
MINUTES ?= 10
fuzz: $(DEV)
	$(BIN)/python -m tests.fuzz.run --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) \
		$(if $(JOBS),--jobs $(JOBS)) $(TESTS)

check: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(BENCH)
	for name in table1 table2 ablation early updates deep5k rows5k growth unseen robustness streams batch \
			found likeness scale speed sizes; do \
		$(BIN)/everhash bench run $$name || exit 1; done
	$(BIN)/everhash bench report --out docs/results --overwrite
	$(BIN)/python benchmarks/summary.py
	$(BIN)/python benchmarks/find_speed.py
	$(BIN)/python benchmarks/first_use.py
	$(BIN)/python benchmarks/exact.py
	$(BIN)/python benchmarks/exact_cost.py
	$(BIN)/python benchmarks/coding.py
	$(BIN)/python benchmarks/refresh_cost.py
	$(BIN)/python benchmarks/peer_products.py
	$(BIN)/python benchmarks/footprint.py
	$(BIN)/python benchmarks/readers.py
	$(BIN)/python benchmarks/serve_load.py --soak 10
	$(BIN)/python benchmarks/cluster_scale.py
	$(BIN)/python benchmarks/large.py
	$(BIN)/python benchmarks/soak.py --minutes 10

# two lines of the README's table, held against the committed rows: minutes instead of hours
bench-quick: $(DEV)
	$(BIN)/python benchmarks/quick.py

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis everhash-demo.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Tests of clusters run where Ray is installed, those of deep methods where PyTorch is; elsewhere they
# say how to install it.
# Each of these sets includes the demo's, so setting up any of them sets up the demo too.
$(DEMO): EXTRAS := cli,serve,plot
$(DEV): EXTRAS := dev
$(BENCH): EXTRAS := bench,serve,cluster,deep
$(DEMO) $(DEV) $(BENCH): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable ".[$(EXTRAS)]"
	touch $(DEMO) $@
