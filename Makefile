# Every target needs nothing done before it: the first one makes .venv with pinned packages, later ones find it there.
# The interpreter can be chosen with PYTHON=/path/to/python3.12. What `make check` runs is listed in tools/stages.py.

VENV := .venv
BIN := $(VENV)/bin
COLUMNS := $(wildcard src/moldau/records/columns/*.py src/moldau/records/columns/*.pxd)
MINUTES ?= 60
LOOPS ?= 6
TIMES ?= 1
VERSION ?= 4.4.0

.DEFAULT_GOAL := help
.PHONY: help demo quick test busy lint format docs site bench check long referee machines setup pins clean clean-columns java

help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' Makefile | expand -t 20

demo: java setup ## the main job on real data: broker, replay, load, questions, report in build/demo
	$(BIN)/moldau pipeline demo --folder build/demo

quick: setup ## the most telling tests, without Java: less than a minute
	$(BIN)/python tools/quick.py

test: java setup ## all deterministic tests, with Python and a JRE
	$(BIN)/python tools/stages.py test

busy: java setup ## the same tests beside LOOPS=6 busy processes, TIMES=1
	$(BIN)/python tools/busy.py --loops $(LOOPS) --times $(TIMES)

lint: $(VENV)/installed ## ruff, mypy, import contracts
	$(BIN)/python tools/stages.py check lint

format: $(VENV)/installed ## let ruff format and fix
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(VENV)/installed ## what is made of the code: docs/settings.md, the words that a shell completes
	$(BIN)/python tools/settings_page.py
	$(BIN)/python tools/completion_words.py

site: $(VENV)/installed ## the documentation as a web site, in build/site
	$(BIN)/python -m tools.documentation.build

bench: java setup ## figures, not tests
	$(BIN)/python -m benchmarks

check: java setup ## `make test`, lint, the newest foreign clients, Kafka's recorded answers, each kind of kill, the whole demo
	$(BIN)/python tools/stages.py check

long: java setup ## every client version, all put-in bugs, 20,000 crash points, thousands of seeds, 1,000 kills, live Kafka (MINUTES=60 ONLY=name)
	$(BIN)/python tools/stages.py long --minutes $(MINUTES) --only "$(ONLY)"

referee: java setup ## live Apache Kafka VERSION=4.4.0 against its recordings; WRITE=1 records anew; needs mvn
	$(BIN)/python tools/referee.py $(VERSION) $(if $(WRITE),--write)

machines: $(VENV)/installed ## install it in chroots of other Debian releases; needs root and debootstrap
	$(BIN)/python tools/machines.py

setup: $(VENV)/columns ## .venv with everything in it

java:
	@tools/require_java.sh

$(VENV)/installed: pyproject.toml constraints.txt tools/install.sh
	@tools/install.sh $(VENV)

$(VENV)/columns: $(VENV)/installed setup.py tools/compile_columns.sh $(COLUMNS)
	@tools/compile_columns.sh $(VENV)

pins: $(VENV)/installed ## new pins for the ranges in pyproject.toml
	$(BIN)/python -m pip install --quiet uv
	{ sed -n '/^#/p' constraints.txt; $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras \
		--upgrade --no-annotate --no-header pyproject.toml; } > constraints.new
	mv constraints.new constraints.txt

clean-columns: ## compile the columns anew the next time
	rm -rf $(VENV)/columns build/cython src/moldau/records/columns/*.so \
		src/moldau/records/columns/compiled_from

clean: clean-columns ## back to a fresh clone
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage src/*.egg-info
