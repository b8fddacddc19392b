# The single door: everything a developer or CI does is a target here. `make help` lists them.

CARGO ?= cargo
# Warnings are errors wherever a result counts; while writing code they stay warnings.
DENY_WARNINGS := -D warnings
CARGO_DENY_VERSION := 0.20.2
# Which cluster `make cluster` and `make cluster-down` mean; those with different names run side by side.
NAME ?= default
# Tests of clusters mostly wait, but each thread may have a control plane of its own.
CLUSTER_THREADS ?= $(shell processors=$$(nproc 2>/dev/null || echo 2); [ $$processors -lt 4 ] && echo $$processors || echo 4)
TESTBED := $(CARGO) run --quiet --locked --package gatewright-testbed --bin cluster --

.DEFAULT_GOAL := help
.PHONY: help demo test test-quick test-cluster cluster cluster-down fmt fmt-check lint deny tidy bench gen doc
.PHONY: setup-cluster setup-deny conformance

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: ## Build the binary and serve examples/quickstart with two echo services; Ctrl-C stops it
	$(CARGO) run --quiet --profile quick-release --package gatewright -- demo

test: ## Set up what is needed and run every check and test; root, because of the cluster tests
	@[ "$$(id -u)" = 0 ] || echo 'note: not root: the quick tests will run, the cluster tests will say what they miss'
	@echo '==> formatting' && $(MAKE) --no-print-directory fmt-check
	@echo '==> lints' && $(MAKE) --no-print-directory lint
	@echo '==> quick tests' && $(MAKE) --no-print-directory test-quick
	@echo '==> cluster tests' && $(MAKE) --no-print-directory test-cluster
	@echo '==> conformance' && $(MAKE) --no-print-directory conformance
	@echo '==> dependencies' && $(MAKE) --no-print-directory deny

test-quick: ## The tests that need neither root nor Go
	$(CARGO) test --workspace --locked --lib --bins --test it --test tidy
	$(CARGO) test --workspace --locked --doc --quiet

test-cluster: setup-cluster ## The tests on a real Kubernetes control plane; root
	$(CARGO) test --workspace --locked --test cluster -- --test-threads=$(CLUSTER_THREADS)

cluster: ## Start a Kubernetes control plane on this machine and print its kubeconfig (NAME=two starts a second); root
	@$(TESTBED) up --name $(NAME)

cluster-down: ## Remove every trace of it; root
	@$(TESTBED) down --name $(NAME)

conformance: ## Run Gateway API's conformance suite in a cluster (PROFILE=, TEST=A,B, PART=1/3, DATA_PLANE=builtin); root
	@$(CARGO) run --quiet --locked --package gatewright-testbed --bin conformance -- \
	  $(if $(PROFILE),--profile $(PROFILE)) $(if $(TEST),--test $(TEST)) $(if $(PART),--part $(PART)) \
	  $(if $(DATA_PLANE),--data-plane $(DATA_PLANE))

setup-cluster:
	@echo 'setting up: tools of the system, etcd, Kubernetes and Gateway API, as far as they are missing (the first time: half an hour)'
	@$(TESTBED) setup

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
	$(CARGO) test --locked --package gatewright-testbed --test tidy

bench: ## Measure against nginx, HAProxy and Envoy; writes target/bench/results.json and docs/benchmarks.md
	$(CARGO) run --profile release --package gatewright-testbed --bin bench -- all --write-docs

gen: ## Regenerate what is generated (golden files, CRDs, manifests, pages of codes and metrics); read the difference
	GOLDEN=write $(CARGO) test --package gatewright-plan golden
	GOLDEN=write $(CARGO) test --package gatewright --test it deploy::what_is_generated
	GOLDEN=write $(CARGO) test --package gatewright --test cluster deploy::chart::the_plain_manifests
	$(CARGO) run --quiet --package gatewright -- docs codes > docs/codes.md
	$(CARGO) run --quiet --package gatewright -- docs metrics > docs/metrics.md

doc: ## The API documentation
	$(CARGO) doc --workspace --no-deps
