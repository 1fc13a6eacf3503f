# Every command a person guesses. `make help` lists them; CI calls the same ones.

.DEFAULT_GOAL := help
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
CONSTRAINTS := constraints/development.txt

.PHONY: help demo dev test test-fast lint format bench docs clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.ready: pyproject.toml $(CONSTRAINTS)
	@echo "preparing $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e '.[dev]'
	@touch $@

demo: $(VENV)/.ready  ## Watch three training jobs being queued, explained, placed, run and cleaned up
	@$(BIN)/python -m gateway.examples.demo

dev: $(VENV)/.ready  ## Keep a gateway running on this machine (SQLite, local processes, virtual fleet)
	@$(BIN)/gateway dev

test: $(VENV)/.ready  ## Run every tier, PostgreSQL and the real Kubernetes control plane included
	@$(BIN)/python -m tests.tiers all

test-fast: $(VENV)/.ready  ## Run the tiers that need no server, in under a minute
	@$(BIN)/python -m tests.tiers fast

lint: $(VENV)/.ready  ## Format, rules, types, import contracts, dependencies
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/deptry gateway
	@$(BIN)/python -m pytest -q tests/unit/house

format: $(VENV)/.ready  ## Rewrite files the way lint wants them
	@$(BIN)/ruff check --fix --exit-zero --quiet .
	@$(BIN)/ruff format .

bench: $(VENV)/.ready  ## Print one JSON line per figure; BENCH=submit,decisions picks programs
	@$(BIN)/python -m tests.bench $(BENCH)

docs: $(VENV)/.ready  ## Write the generated reference pages again
	@$(BIN)/python -m gateway.cli.reference docs/reference

clean:  ## Remove what the targets above made in this folder
	rm -rf $(VENV) .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build .demo
