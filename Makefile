# The front door. `make` alone says what there is; a recipe is one or two lines, and what is longer is a script.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# What is costly to make and cheap to lose: toolchains, builders, compiled crates.
export WEIR_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/weir

.PHONY: help
help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Check that this machine has what is needed, and get the toolchain for plugins
	@scripts/setup.sh

.PHONY: plugins
plugins: ## Build the shipped sinks: build/plugins/*.wasm
	@scripts/build-rust.sh plugins build/plugins

.PHONY: guests example-guests test-guests
guests: example-guests test-guests ## Build the example sinks and the badly behaved ones of the tests: build/guests, build/test-guests
example-guests:
	@scripts/build-rust.sh guest-examples build/guests
	@scripts/build-python.sh guest-examples/count-python build/guests/count-python.wasm
	@scripts/build-js.sh guest-examples/count-js count build/guests/count-js.wasm
test-guests:
	@scripts/build-rust.sh tests/guests build/test-guests

.PHONY: lint-scripts
lint-scripts: ## Check the scripts
	@scripts/lint.sh

.PHONY: clean
clean: ## Remove what was built here; the cache folder stays
	@rm -rf build
