# make run    set everything up, then run one block of suites/esrgan.toml on one core: five variants for a first table
#             within a minute, then all of them; some minutes. `harness run suites/esrgan.toml --tag block` takes all
#             blocks and devices, and the networks, which are tagged network, take more than an hour
# make test   set everything up, then lint, types and the quick tests; some minutes
# make test-all  the same with all tests, which is what continuous integration runs
# make wheel  write dist/*.whl, which pip installs where there is no checkout
# make smoke  set everything up, then run a little of everything, which takes a minute or two

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

.PHONY: run test test-all smoke install lint types unit quick untimed timed vulkan browser schema commands overhead \
        layout verdicts explain bisect outputs tune fleet history plugins picture releases field wheel clean

FIRST := $(foreach variant,stock im2col channels-last share-concat nhwc-share-tuned,--filter 'rdb/$(variant)@cpu')

run: install
	$(BIN)/harness run suites/esrgan.toml $(FIRST) --budget 15 --generations 3 $(ARGS)
	$(BIN)/harness run suites/esrgan.toml --filter 'rdb/*@cpu' --budget 75 $(ARGS)

# mypy works beside the tests, which wait now and then; what it says comes after theirs, and before what compares times.
test: install lint
	@$(MAKE) --no-print-directory types >$(VENV)/types.txt 2>&1 & types=$$!; \
	$(MAKE) --no-print-directory quick; quick=$$?; \
	wait $$types; types=$$?; cat $(VENV)/types.txt; \
	exit $$((quick || types))

test-all: install browser lint
	@$(MAKE) --no-print-directory types >$(VENV)/types.txt 2>&1 & types=$$!; \
	$(MAKE) --no-print-directory untimed; untimed=$$?; \
	wait $$types; types=$$?; cat $(VENV)/types.txt; \
	$(MAKE) --no-print-directory timed && exit $$((untimed || types))

smoke: install
	$(BIN)/harness run suites/smoke.toml $(ARGS)

install: $(VENV)/.installed vulkan

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

# A software Vulkan driver (Mesa's lavapipe), where there is no Vulkan device, on Debian and its kin, as root.
# Without one the Vulkan cases are skipped, and the report says so.
vulkan: $(VENV)/.installed
	@sh scripts/install-vulkan.sh "$$($(BIN)/python -c 'import iree._runtime_libs as r; print(r.__path__[0])')"

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python scripts/budgets.py

types: $(VENV)/.installed
	$(BIN)/mypy

# Each run prints its ten slowest tests. Python keeps what it compiled, since the tests start hundreds of processes.
unit: untimed timed

quick untimed timed: export PYTHONDONTWRITEBYTECODE =

# In two processes. Each takes a part of the tests in their order, so that what several of them share is made once, and
# who is done takes over from the other.
quick: $(VENV)/.installed
	$(BIN)/pytest --quiet --numprocesses 2 --dist worksteal --durations 10 -m "not timing and not slow" $(ARGS)

untimed: $(VENV)/.installed browser
	$(BIN)/pytest --quiet --numprocesses 2 --dist worksteal --durations 10 -m "not timing" $(ARGS)

# Alone, since they compare times.
timed: $(VENV)/.installed
	$(BIN)/pytest --quiet --durations 10 -m timing $(ARGS) tests/end_to_end tests/measure

# Chromium, in which the tests open the dashboard, on Debian and its kin, as root. Without one those tests are skipped.
browser:
	@sh scripts/install-chromium.sh

# The JSON Schemas that suites, lists of suites, flag sets and files of variants name in their first line.
schema: $(VENV)/.installed
	$(BIN)/harness schema suite > docs/suite.schema.json
	$(BIN)/harness schema list > docs/list.schema.json
	$(BIN)/harness schema flagset > docs/flagset.schema.json
	$(BIN)/harness schema variants > docs/variants.schema.json

# What every command takes, from its declaration.
commands: $(VENV)/.installed
	$(BIN)/python scripts/commands.py > docs/commands.md

# What the length of an installation's path does to a program's time: two minutes, then rewrites the table of
# docs/statistics.md.
layout: install
	$(BIN)/python -m benchmarks.layout

overhead: install
	$(BIN)/python -m benchmarks.overhead

# How often verdicts are right: records for two hours, then rewrites the tables of docs/statistics.md.
verdicts: install
	$(BIN)/python -m benchmarks.verdicts $(ARGS)

# How often outputs are judged wrongly: compiles right programs and planted faults for twenty minutes (what was stopped
# goes on), then rewrites the tables of docs/statistics.md.
outputs: install
	$(BIN)/python -m benchmarks.outputs $(ARGS)

# How often an explanation names the right dispatch: measures for twenty minutes, then rewrites the table of
# docs/explain.md.
explain: install
	$(BIN)/python -m benchmarks.explain $(ARGS)

# How often a bisect names the right step: plays back what `make verdicts` recorded, for two minutes, then rewrites the
# tables of docs/bisect.md.
bisect: install
	$(BIN)/python -m benchmarks.bisect $(ARGS)

# What `harness tune` finds, beside hand-made variants and other engines: searches and measures for an evening, then
# rewrites the tables of docs/tuning.md. Where an engine has no package for this machine, its columns are without it.
tune: install
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[peers]'
	$(BIN)/python -m benchmarks.tune $(ARGS)

# What a fleet's engine takes with 10, 50 and 200 hosts, whether a hundred runs survive hosts that are killed, and how
# much sooner two workers compile than one: runs for an hour, then rewrites the tables of docs/fleet.md.
fleet: install
	$(BIN)/python -m benchmarks.fleet $(ARGS)

# How often changes in a history are found, and how fast that is at ten million points: computes for some minutes, then
# rewrites the tables of docs/history.md.
history: install
	$(BIN)/python -m benchmarks.history $(ARGS)

# What the built-in plugins gain beside ONNX Runtime and Halide: measures for some minutes, then rewrites the tables of
# docs/seeds.md. Where an engine has no package for this machine, its rows are left out.
plugins: install
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[peers]'
	$(BIN)/python -m benchmarks.plugins esrgan $(ARGS)
	$(BIN)/python -m benchmarks.plugins convolution $(ARGS)

# The picture of docs/seeds.md that went through Real-ESRGAN; compiles the network for some minutes.
picture: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[picture]'
	$(BIN)/python -m benchmarks.upscale $(ARGS)

# The part of docs/explain.md about a block over all releases: installs them, measures for a quarter of an hour, and keeps
# the run and the explanations in results/published.
releases: install
	$(BIN)/python -m benchmarks.releases $(ARGS)

# What the releases of IREE did to users of CPUs: some hours, in parts; what was stopped goes on. OUT=FOLDER measures it
# for oneself, QUICK=1 a part of it in twenty minutes; without either, what is committed for docs/field goes on.
field: install
	$(if $(OUT)$(QUICK),FIELD_OUT='$(or $(OUT),results/field-quick)') $(BIN)/python -m benchmarks.field $(if $(QUICK),--quick) $(ARGS)

# Suites, flag sets and docs are in it; `harness new examples` writes them out.
wheel: $(VENV)/.installed
	$(BIN)/python -m hatchling build --target wheel --directory dist

clean:
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache
