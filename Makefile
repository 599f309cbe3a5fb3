# Everything here works on a fresh machine: each target first makes .venv if it does not exist.
SHELL := /bin/bash
# Tests start hundreds of brokers: keep compiled bytecode, but out of the source folders, even if
# the environment forbids writing it beside them.
export PYTHONPYCACHEPREFIX := $(CURDIR)/.cache/compiled
export PYTHONDONTWRITEBYTECODE :=
.DEFAULT_GOAL := help

READY := .venv/.ready
SPARK_READY := .venv-spark/.ready
# `make test SPARK=no` and `make demo SPARK=no` skip Spark, which is a download of about 600 MB.
SPARK ?= yes
SEEDS ?= 200
# `make test TESTS='--long simulation'` also runs the long tests of one group.
TESTS ?=
# `make bench-field FIELD='--systems kafkaesque kafka --pin'` passes more arguments on.
QUICK ?=
FIELD ?=

.PHONY: help setup spark test test-long test-spark test-all pythons wheel fresh demo check format docs sim chaos mutants bench bench-field figures requirements clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

setup: $(READY) ## make .venv with the pinned requirements

$(READY): pyproject.toml requirements/dev.txt requirements/uv.txt tools/setup.sh
	@bash tools/setup.sh

spark: $(SPARK_READY) ## make .venv-spark, the environment with Spark

$(SPARK_READY): pyproject.toml requirements/dev.txt requirements/spark.txt tools/setup.sh
	@bash tools/setup.sh spark

test: $(READY) $(if $(filter yes,$(SPARK)),$(SPARK_READY)) ## run all tests except the long ones, then show the time budgets
	@.venv/bin/python -m tools.run_tests $(TESTS) $(if $(filter yes,$(SPARK)),,--without spark)

test-long: $(READY) $(if $(filter yes,$(SPARK)),$(SPARK_READY)) ## run all tests, including the long ones
	@.venv/bin/python -m tools.run_tests --all $(if $(filter yes,$(SPARK)),,--without spark)

test-spark: $(READY) $(SPARK_READY) ## run the Spark tests except the long ones
	@.venv/bin/python -m tools.run_tests --only spark

test-all: test-long ## run everything: all tests, all mutants, 2,000 seeds and all of chaos
	@$(MAKE) --no-print-directory mutants
	@$(MAKE) --no-print-directory sim SEEDS=2000
	@$(MAKE) --no-print-directory chaos

pythons: $(READY) ## run the unit and compatibility tests on every Python on this machine
	@.venv/bin/python -m tools.pythons

wheel: $(READY) ## install the wheel into a clean environment and use it there
	@.venv/bin/python -m tools.wheel

fresh: ## run the two commands of the README in a minimal Debian (root, or mmdebstrap)
	@SPARK=$(SPARK) bash tools/fresh.sh

demo: $(READY) $(if $(filter yes,$(SPARK)),$(SPARK_READY)) ## watch three brokers and Spark lose a broker and no records
	@.venv/bin/kafkaesque demo $(if $(filter yes,$(SPARK)),--spark .venv-spark/bin/python)

check: $(READY) ## format, lint, types, layering, generated pages and links
	@.venv/bin/ruff format --check --quiet . || { echo "run: make format"; exit 1; }
	@.venv/bin/ruff check --quiet .
	@.venv/bin/mypy --no-error-summary
	@mkdir -p .cache
	@.venv/bin/lint-imports --no-logo >.cache/lint-imports.txt 2>&1 || { cat .cache/lint-imports.txt; exit 1; }
	@.venv/bin/python -m tools.pages --check
	@.venv/bin/python -m tools.links
	@echo "check: all clean"

format: $(READY) ## format the code and apply ruff's fixes
	@.venv/bin/ruff check --fix --quiet . || true
	@.venv/bin/ruff format --quiet .

docs: $(READY) ## regenerate the generated pages of docs/reference
	@.venv/bin/python -m tools.pages

sim: $(READY) ## run the simulator on SEEDS seeds
	@.venv/bin/kafkaesque sim --seeds $(SEEDS)
	@.venv/bin/kafkaesque sim --seeds $(SEEDS) --world brokers

chaos: $(READY) ## kill, pause, cut off and starve real brokers, and check what clients saw
	@.venv/bin/python -m tests.chaos $(STORY)

mutants: $(READY) ## break known rules one at a time and check that tests notice
	@.venv/bin/python -m tests.mutants

bench: $(READY) $(SPARK_READY) ## run the bench programs and print what they measured
	@.venv/bin/python -m tools.figures --print

bench-field: $(READY) ## measure against Kafka, NATS, Redis, RabbitMQ, ActiveMQ (QUICK=1: in minutes)
	@.venv/bin/python -m bench.field $(if $(QUICK),--quick) $(FIELD)
	@$(MAKE) --no-print-directory docs

figures: $(READY) $(SPARK_READY) ## measure every figure and write docs/reference/figures.md
	@.venv/bin/python -m tools.figures

requirements: $(READY) ## compile the requirement files from pyproject.toml (UPGRADE=1: newer versions)
	@bash tools/requirements.sh

clean: ## remove everything that make created
	@rm -rf .venv .venv-spark .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
