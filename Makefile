# One command sets everything up and runs the main job: make quickstart
VENV ?= .venv
# The first of these that starts and is new enough (a pyenv shim may exist without its Python).
PYTHON ?= $(shell for p in python3.11 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: help quickstart test check format
.DEFAULT_GOAL := help

help:
	@echo "make quickstart  set up $(VENV), then demonstrate, train, evaluate: runs/quickstart/report.html"
	@echo "make test        set up $(VENV), then run the tests but the slow ones"
	@echo "make check       what CI runs: ruff, mypy, all tests"
	@echo "make format      let ruff mend what it can"

quickstart: $(INSTALLED)
	$(BIN)/fetchlab quickstart --out runs/quickstart $(ARGS)

test: $(INSTALLED)
	$(BIN)/python -m pytest -m "not slow"

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -m "not slow"
	$(BIN)/python -m pytest -m slow

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# numpy goes first: where there is no pybullet wheel (Python 3.12) pip compiles it, and only a build
# that finds numpy gives camera images as arrays.
$(INSTALLED): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "fetchlab needs Python 3.11 or newer (make PYTHON=/path/to/python3.11)" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -c constraints.txt numpy setuptools wheel
	$(BIN)/python -m pip install -c constraints.txt --no-build-isolation pybullet
	$(BIN)/python -m pip install -c constraints.txt -e '.[dev]'
	@touch $(INSTALLED)
