# The chores of the project; `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
CARGO ?= scripts/cargo.sh
DEMO ?= $(or $(TMPDIR),/tmp)/tr-demo
PREFIX ?= /usr/local
TARGET := $(or $(CARGO_TARGET_DIR),target)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 20

setup: ## install the packages for building and testing (Debian, Ubuntu)
	@scripts/setup.sh test

# Options of scripts/build.sh.
BUILD_OPTIONS ?=
# It prints a line every five seconds; the demo has one of its own.
BEAT ?= scripts/heartbeat.sh "build: still compiling"
build: ## install the packages for building, and build tr
	@status=0; scripts/setup.sh build || status=$$?; \
	case $$status in \
	0) exec $(BEAT) scripts/build.sh $(BUILD_OPTIONS) ;; \
	1) echo "building everything but tr record, with cargo and gcc alone"; \
		exec $(BEAT) scripts/build.sh $(BUILD_OPTIONS) --without-record ;; \
	*) exit $$status ;; \
	esac

demo: ## build tr, record a build, and analyze it: installs packages, takes two minutes
	@echo "demo: builds tr first, which installs packages that are missing and takes two minutes"
	@scripts/heartbeat.sh "demo: step 1 of 3, building tr" $(MAKE) --no-print-directory build BUILD_OPTIONS=--demo BEAT=
	@scripts/demo.sh "$(DEMO)"

install: ## install a built tr into PREFIX (/usr/local); SETCAP=1 lets it trace, GROUP=name for that group alone
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" scripts/install.sh "$(TARGET)/release/tr"

uninstall: ## remove the files of make install
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" scripts/install.sh --remove

DIST ?= dist
release: ## build the tarball, the packages and the checksums of a release into DIST (dist)
	@scripts/setup.sh build
	@scripts/release.sh "$(DIST)"

test-release: ## install the release in bare root filesystems and record there, as root; build it twice
	@scripts/test-release.sh "$(DIST)"

test: ## run every test; those that record use sudo
	@status=0; scripts/setup.sh $(if $(TR_LONG),long,test) || status=$$?; \
	case $$status in \
	0) exec scripts/test.py ;; \
	1) exec scripts/test.py --without-record ;; \
	*) exit $$status ;; \
	esac

test-long: ## what takes too long for CI: all rounds and cases of make test, Spark, all kernels, the fuzzer
	@TR_LONG=1 $(MAKE) --keep-going quick test test-kernels fuzz

test-unprivileged: setup ## run the tests that record or write as nobody, without the right to trace (as root)
	@LIMIT=600 exec scripts/test.py --unprivileged

test-kernels: ## test recordings in a kernel of Debian (in QEMU) and in this one
	@scripts/setup.sh kernels
	@scripts/test-kernels.sh

# Nothing here records: Rust is enough, without clang, libelf and sudo. cargo nextest, where it is installed, runs the same
# tests, and ends with one line of counts (.config/nextest.toml).
QUICK = --locked --workspace --exclude tr-bpf --exclude tr-record --exclude tr-symbols --no-default-features --features reading
QUICK_TESTS = api architecture command_line fixtures reports snapshots
quick: ## a minute for a change of what reads recordings: formatting, unit tests, snapshots; needs Rust alone, and no root
	$(CARGO) fmt --all --check
	@if $(CARGO) nextest --version >/dev/null 2>&1; then runner="nextest run --status-level slow"; else runner=test; fi; \
	set -x; exec $(CARGO) $$runner $(QUICK) --lib --bins $(addprefix --test ,$(QUICK_TESTS))

# The tests with parts for tr record. With the features of the whole workspace nothing else is compiled again.
FEATURED = $(basename $(notdir $(shell grep -l 'feature = "record"' tests/*.rs)))
check: setup ## check formatting, lints, docs, layers, the dialect, features, packages, MSRV, the page's bundle
	$(CARGO) fmt --all --check
	scripts/lint.sh
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --document-private-items
	scripts/layers.sh
	scripts/dialect.py
	CLANG="$(abspath $(TARGET))/absent/clang" $(CARGO) check --locked --workspace --no-default-features --features reading --bin tr $(addprefix --test ,$(FEATURED)) 2>&1 | tee >(cat >&2) | { ! grep '^warning' >/dev/null; }
	scripts/features.sh
	scripts/deny.sh
	scripts/msrv.sh
	scripts/web.sh check

minimal-versions: ## compile with the oldest versions that the Cargo.toml files allow (needs the network)
	scripts/minimal-versions.sh

audit: ## check licences, duplicates, sources and known vulnerabilities of the packages (needs the network)
	scripts/deny.sh --advisories

fmt: ## lay out Rust, Python, JavaScript and C
	$(CARGO) fmt --all
	scripts/lint.sh --fix

bench: setup build ## run the benchmarks
	$(CARGO) bench --locked --workspace
	benches/overhead.sh
	benches/html.sh

OLD_TR ?=
bench-quick: build ## the main figures in five minutes, beside the last ones (or OLD_TR's) and perf's, into benches/runs; as root
	benches/quick.py "$(TARGET)/release/tr" $(if $(OLD_TR),--old "$(OLD_TR)")

bench-scale: build ## every command that reads, on simulated recordings of 10^5 to 10^7 events, in some minutes
	$(CARGO) build --locked -q --release -p tr-sim --example trace
	benches/scale.py --tr "$(TARGET)/release/tr" --trace "$(TARGET)/release/examples/trace"

RESULTS = benches/validation/results
validate: setup build ## apply the first advice for real builds, plant differences, hold forecasts against runs; as root
	benches/validation/validate.py --out docs/validation.md --csv $(RESULTS)/advice.csv
	benches/validation/diff.py --csv $(RESULTS)/differences.csv | benches/section.py docs/validation.md
	benches/validation/predict.py --out docs/validation.md --csv $(RESULTS)/forecasts.csv
	benches/validation/beside.py --out docs/validation.md --csv $(RESULTS)/forecasts-beside.csv

web: setup ## rebuild the bundle of the page of tr report
	scripts/web.sh build

screenshots: setup build ## make the pictures of the page in docs/
	scripts/web.sh screenshots

FUZZ_SECONDS ?= 60
fuzz: setup ## run each fuzz target, or those in FUZZ, for FUZZ_SECONDS
	scripts/fuzz.sh "$(FUZZ_SECONDS)" $(FUZZ)

fixtures: setup build ## record the fixtures again, as root
	fixtures/record.sh

.PHONY: help setup build demo install uninstall release test-release test test-long test-unprivileged test-kernels quick check minimal-versions audit fmt bench bench-quick bench-scale validate web screenshots fuzz fixtures
