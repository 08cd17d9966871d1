# The front door. `make` alone says what there is; a recipe is one or two lines, and what is longer is a script.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# What is costly to make and cheap to lose: toolchains, builders, compiled crates.
export WEIR_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/weir

.PHONY: help
help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Check that this machine has what is needed, and get the toolchain for plugins
	@scripts/setup.sh

# One target folder for every checkout and for CI, so that a fresh clone compiles only what is in this tree; and always the whole
# workspace, so that every command works with the same features of the same dependencies.
export CARGO_TARGET_DIR ?= $(WEIR_CACHE)/target
CARGO_FLAGS := --release --workspace $(if $(CI),--locked)

.PHONY: objects
objects:
	@scripts/claim-objects.sh

.PHONY: build
build: setup objects ## Build the host and the Doris emulator: the binary `weir` in build/
	@cargo build $(CARGO_FLAGS)
	@mkdir -p build && ln -f "$(CARGO_TARGET_DIR)/release/weir" build/weir 2>/dev/null || cp "$(CARGO_TARGET_DIR)/release/weir" build/weir

.PHONY: demo
demo: build plugins ## The main job end to end, with the host killed on the way, compared by content
	@"$(CARGO_TARGET_DIR)/release/demo"

.PHONY: real-doris
real-doris: build plugins ## The main job against a real Doris; docs/doris.md says how
	@"$(CARGO_TARGET_DIR)/release/real_doris"

.PHONY: test
test: build plugins guests test-plugins ## Run every test
	@cargo test $(CARGO_FLAGS)

.PHONY: lint
lint: objects lint-plugins lint-scripts ## Check format and lints of everything
	@cargo fmt --check
	@cargo clippy $(CARGO_FLAGS) --all-targets -- -D warnings

.PHONY: bless
bless: objects ## Write the expected outputs of golden tests anew
	@BLESS=1 TRYCMD=overwrite cargo test $(CARGO_FLAGS) --test golden

.PHONY: ci
ci: test lint ## What CI runs

.PHONY: plugins
plugins: setup ## Build the shipped sinks: build/plugins/*.wasm
	@scripts/build-rust.sh plugins build/plugins

.PHONY: guests example-guests test-guests
guests: example-guests test-guests ## Build the example sinks and the badly behaved ones of the tests: build/guests, build/test-guests
example-guests: setup
	@scripts/build-rust.sh guest-examples build/guests
	@scripts/build-python.sh guest-examples/count-python build/guests/count-python.wasm
	@scripts/build-js.sh guest-examples/count-js count build/guests/count-js.wasm
test-guests: setup
	@scripts/build-rust.sh tests/guests build/test-guests

# Workspaces of plugins: their own lock files, one shared target folder.
GUEST_WORKSPACES := plugins guest-examples tests/guests

.PHONY: test-plugins
test-plugins: ## Run the plugins' and the examples' own tests, natively and without a host
	@for each in plugins guest-examples; do (cd $$each && CARGO_TARGET_DIR=$(WEIR_CACHE)/guest-target cargo test --release) || exit; done

.PHONY: lint-plugins
lint-plugins: ## Check format and lints of all plugins
	@for each in $(GUEST_WORKSPACES); do (cd $$each && cargo fmt --check && \
	  CARGO_TARGET_DIR=$(WEIR_CACHE)/guest-target cargo clippy --release --all-targets -- -D warnings) || exit; done

.PHONY: lint-scripts
lint-scripts: ## Check the scripts with shellcheck
	@scripts/lint.sh

.PHONY: clean
clean: ## Remove what was built here; the cache folder stays
	@rm -rf build
