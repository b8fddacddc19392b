# The single door: everything a developer or CI does is a target here. `make help` lists them.

CARGO ?= cargo
# Warnings are errors wherever a result counts; while writing code they stay warnings.
DENY_WARNINGS := -D warnings
CARGO_DENY_VERSION := 0.20.2

.DEFAULT_GOAL := help
.PHONY: help demo test test-quick fmt fmt-check lint deny tidy bench gen doc setup-deny

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: ## Build the binary and serve examples/quickstart with two echo services; Ctrl-C stops it
	$(CARGO) run --quiet --profile quick-release --package gatewright -- demo

test: ## Set up what is needed and run every check and test
	@echo '==> formatting' && $(MAKE) --no-print-directory fmt-check
	@echo '==> lints' && $(MAKE) --no-print-directory lint
	@echo '==> tests' && $(CARGO) test --workspace --locked
	@echo '==> dependencies' && $(MAKE) --no-print-directory deny

test-quick: ## The tests alone
	$(CARGO) test --workspace

fmt: ## Format the code
	$(CARGO) fmt --all

fmt-check:
	$(CARGO) fmt --all --check

lint: ## Clippy, with warnings denied
	$(CARGO) clippy --workspace --all-targets --locked -- $(DENY_WARNINGS)

# The database of advisories lives where not every build machine can reach; licences, bans and sources need no network.
deny: setup-deny ## Check licences, duplicates and sources of all dependencies
	$(CARGO) deny --log-level error check licenses bans sources

setup-deny:
	@$(CARGO) deny --version 2>/dev/null | grep -q ' $(CARGO_DENY_VERSION)$$' || { \
	  echo 'setting up cargo-deny $(CARGO_DENY_VERSION) (once per machine, some minutes)'; \
	  $(CARGO) install --quiet --locked cargo-deny --version $(CARGO_DENY_VERSION); }

tidy: ## The rules of the house: crate arrows, file sizes, module docs
	$(CARGO) test --package gatewright-testbed --test tidy

bench: ## Measure against nginx, HAProxy and Envoy; writes target/bench/results.json and docs/benchmarks.md
	$(CARGO) run --profile release --package gatewright-testbed --bin bench -- all --write-docs

gen: ## Regenerate what is generated (golden files, CRDs, manifests, pages of codes and metrics); read the difference
	GOLDEN=write $(CARGO) test --package gatewright-plan golden
	GOLDEN=write $(CARGO) test --package gatewright --test it deploy::what_is_generated
	$(CARGO) run --quiet --package gatewright -- docs codes > docs/codes.md
	$(CARGO) run --quiet --package gatewright -- docs metrics > docs/metrics.md

doc: ## The API documentation
	$(CARGO) doc --workspace --no-deps
