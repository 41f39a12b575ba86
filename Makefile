# The chores of the project; `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
CARGO ?= cargo
DEMO ?= $(or $(TMPDIR),/tmp)/tr-demo

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

setup: ## install what is missing (Debian, Ubuntu)
	@scripts/setup.sh

demo: setup ## build tr, record a real build, show where its time went
	$(CARGO) build --release
	@scripts/demo.sh "$(DEMO)"

test: setup ## every test; those that need BPF run for real as root
	@scripts/test.sh

test-kernels: ## record in Debian's kernels (in QEMU) and in this one, and check it
	@scripts/setup.sh kernels
	@scripts/test-kernels.sh

check: setup ## formatting, clippy, docs, layers, the page's bundle
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items
	scripts/layers.sh
	scripts/web.sh check

fmt: ## format the code
	$(CARGO) fmt --all

bench: setup ## the benchmarks
	$(CARGO) bench --workspace
	$(CARGO) build --release
	benches/overhead.sh
	benches/html.sh

web: setup ## bundle the page of tr report anew
	scripts/web.sh build

screenshots: setup ## pictures of the page, into docs/
	$(CARGO) build --release
	scripts/web.sh screenshots

FUZZ_SECONDS ?= 60
fuzz: setup ## each fuzz target for FUZZ_SECONDS
	scripts/fuzz.sh "$(FUZZ_SECONDS)"

fixtures: setup ## record the fixtures again (as root)
	$(CARGO) build --release
	fixtures/record.sh

.PHONY: help setup demo test test-kernels check fmt bench web screenshots fuzz fixtures
