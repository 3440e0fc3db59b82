# Benchyard: what developers type. `make` alone lists it.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.PHONY: help setup engine images postgres browser faketime identity-provider azure-emulator client-generator inspect-ai demo up down test test-fast test-data test-kubernetes test-exhaustive check bench lock clean
# Hundreds of processes import the same modules in a test run: each is compiled once, also where the environment forbids that.
unexport PYTHONDONTWRITEBYTECODE

bin := .venv/bin
pytest := $(bin)/python -m pytest -q
# What `make test` leaves to targets of their own: tests of many minutes, those that read the public benchmark files, and those on a cluster.
ours := not exhaustive and not data and not kubernetes
quick := tests/unit tests/service tests/contract tests/architecture tests/deploy
on_cluster := tests/engines/test_conformance.py tests/kubernetes
# What runs side by side: the tools of `make check`, and what the tests need, in tracks that share no package manager. The
# stages of `make test` run one at a time, the quickest tests first: on two processors, two at a time take as long together,
# and each test waits longer. With more processors, `jobs=2` runs two at a time.
checks := check-style check-types check-imports
tracks := track-images track-packages
stages := stage-quick stage-engines stage-e2e stage-faults
.PHONY: $(checks) $(tracks) $(stages)
jobs ?= 1
# Each reports in one piece when it ends; make before version 4 mixes their lines.
side-by-side := $(MAKE) $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup:  ## Make .venv with the locked versions, and the command .venv/bin/benchyard
	@scripts/setup

engine:  ## Make a Docker engine answer; install and start one where that is possible
	@scripts/ensure-engine

images: engine  ## Build the runner's and the orchestrator's image, if their source changed
	@scripts/build-images

demo: setup images  ## Set everything up, run the demo models in real containers, leave the dashboard running
	@$(bin)/benchyard demo

up: setup images  ## Start the service in the background and print its address
	@$(bin)/benchyard up

down:  ## Stop the service and remove its containers and networks; the data stays
	@if [ -x $(bin)/benchyard ]; then $(bin)/benchyard down; else echo "Nothing of Benchyard was set up here."; fi

check: setup  ## Lint, formatting, types, who imports whom
	@$(side-by-side) --jobs=2 $(checks)

check-style:
	@$(bin)/ruff check
	@$(bin)/ruff format --check --quiet

check-types:
	@$(bin)/mypy

check-imports:
	@$(bin)/lint-imports

test-fast: setup  ## The tests that need neither engine nor browser
	@$(pytest) -m "not engine and not browser and $(ours)" $(quick)

test: setup  ## Everything: set up what the tests need, then run them all
	@$(side-by-side) --jobs=4 $(checks) $(tracks)
	@echo "Tests run in $(words $(stages)) stages, $(jobs) at a time; each reports when it ends. None starts once one has failed."
	@$(side-by-side) --jobs=$(jobs) $(stages)

track-images:
	@$(MAKE) images
	@$(MAKE) postgres
	@$(MAKE) browser

track-packages:
	@$(MAKE) faketime
	@$(MAKE) identity-provider
	@$(MAKE) azure-emulator
	@$(MAKE) client-generator
	@$(MAKE) inspect-ai

# Most tests wait now and then, so there is a worker more than processors. A stolen test can go to any worker (`worksteal`);
# tests of one file stay together (`loadfile`) where the file shares a browser, a service or a run of the sandbox's suite.
stage-quick:
	@$(pytest) -m "$(ours)" -n 3 --dist worksteal $(quick)

stage-engines:
	@$(pytest) -m "$(ours)" -n 3 --dist loadfile tests/engines tests/sandbox

stage-e2e:
	@$(pytest) -m "$(ours)" -n 3 --dist loadfile tests/e2e

stage-faults:
	@$(pytest) -m "$(ours)" -n 3 --dist worksteal tests/faults

test-data: setup  ## The tests on the public benchmark files in BENCHYARD_TEST_DATA; names what it cannot run
	@if [ -n "$${BENCHYARD_TEST_DATA:-}" ]; then $(MAKE) images; \
	 else echo "make test-data: BENCHYARD_TEST_DATA names no directory with the public benchmark files, so none of these tests runs:"; fi
	@$(pytest) -m "data and not exhaustive" -n 2 --dist loadfile -rs --no-fold-skipped tests/published

test-kubernetes: setup images  ## The tests on a Kubernetes cluster: the one in KUBECONFIG, or two nodes that are made here (first time: 12 CPU minutes)
	@if [ -n "$${KUBECONFIG:-}" ]; then \
	   echo "make test-kubernetes: uses the cluster in KUBECONFIG, so the tests that kill or cut off nodes do not run"; \
	   $(pytest) -m "kubernetes and not own_nodes" $(on_cluster); \
	 else scripts/kubernetes-here build && $(pytest) -m kubernetes $(on_cluster); fi

test-exhaustive: setup images  ## The tests that take many minutes; with BENCHYARD_TEST_DATA, every published answer graded again
	@$(pytest) -m "exhaustive and not kubernetes" -rs --no-fold-skipped tests

postgres: engine  ## Find or build a PostgreSQL image for the tests
	@scripts/postgres-image >/dev/null

browser:  ## Find or install a Chromium for the tests
	@scripts/browser >/dev/null

faketime:  ## Find or get libfaketime, with which tests shift the clock of a service
	@scripts/faketime >/dev/null

identity-provider: setup  ## Install the identity provider that the tests sign in with
	@scripts/node-package identity-provider tests/e2e/identity_provider >/dev/null

azure-emulator: setup  ## Install the emulator of Azure's object store that a test stores archives in
	@scripts/node-package azure-emulator tests/e2e/azure_emulator >/dev/null

client-generator: setup  ## Install what generates a client from the OpenAPI document in a test
	@scripts/client-generator >/dev/null

inspect-ai: setup  ## Install Inspect, whose reader and viewer open our exports in a test
	@scripts/python-environment inspect-ai >/dev/null

bench: setup images  ## Measure, with ratios for docs/performance.md (faults apart: python -m tests.bench.faults)
	@for each in start events live pages sandbox.measure; do echo "== $$each"; $(bin)/python -m tests.bench.$$each; done

lock: setup  ## Write requirements/*.txt anew from pyproject.toml
	@scripts/lock

clean:  ## Delete .venv, caches and build leftovers; data and images stay
	@rm -rf .venv build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
