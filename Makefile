# make demo and make test work on a fresh machine with Python 3.11, pip and make.
PYTHON ?= python3
BIN := .venv/bin
CORE := .venv/.core
DEV := .venv/.dev
BENCH := .venv/.bench

.PHONY: demo test check bench clean

demo: $(CORE)
	$(BIN)/everhash demo

test: $(DEV)
	$(BIN)/python -m everhash.kernels
	$(BIN)/pytest -n auto --maxprocesses 8 --dist loadfile

check: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(BENCH)
	for name in table1 table2 ablation early updates deep5k growth unseen robustness streams batch \
			scale speed sizes; do \
		$(BIN)/everhash bench run $$name || exit 1; done
	$(BIN)/everhash bench report
	$(BIN)/python benchmarks/exact.py
	$(BIN)/python benchmarks/exact_cost.py
	$(BIN)/python benchmarks/coding.py
	$(BIN)/python benchmarks/refresh_cost.py
	$(BIN)/python benchmarks/peer_products.py
	$(BIN)/python benchmarks/footprint.py
	$(BIN)/python benchmarks/readers.py
	$(BIN)/python benchmarks/serve_load.py --soak 10

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis everhash-demo.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(CORE): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable .
	touch $@

$(DEV): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable ".[dev]"
	touch $(CORE) $@

$(BENCH): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable ".[bench]"
	touch $(CORE) $@
