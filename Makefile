# The one entry. `make help` lists what there is.
SHELL := /bin/bash
PG_CONFIG ?= pg_config
PREFIX ?= /usr/local
BUILD ?= build
WERROR ?=
JOBS ?= $(shell nproc)
export PG_CONFIG BUILD

.DEFAULT_GOAL := help
.PHONY: all help deps build deb install demo analyze check check-anomalies check-citus check-crash check-matrix check-packages check-sanitizers check-upgrade coverage installcheck bench docs lint format codegen codegen-check arch migrations-lock migrations-lint clean
# One step after the other, also with -j: packages come before the build that needs them.
.NOTPARALLEL:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

deps: ## install the Debian packages that are missing (sudo when not root)
	@tests/support/deps

TARGET ?= all
build: ## build the extension for PG_CONFIG, the library, the examples and the tests
	@command -v $(PG_CONFIG) >/dev/null || { echo "there is no $(PG_CONFIG); run: make deps" >&2; exit 1; }
	@# What was built for another server is of no use for this one.
	@server=$$($(PG_CONFIG) --version); if [ "$$(cat extension/.server 2>/dev/null)" != "$$server" ]; then \
	  $(MAKE) -s -C extension PG_CONFIG=$(PG_CONFIG) clean && echo "$$server" >extension/.server; fi
	$(MAKE) -s -j $(JOBS) -C extension PG_CONFIG=$(PG_CONFIG) WERROR=$(WERROR)
	@cmake -S client -B $(BUILD) -DIDEMPOTENCY_TESTS=ON -DIDEMPOTENCY_WERROR=$(if $(WERROR),ON,OFF) \
	  -DCMAKE_INSTALL_PREFIX=$(PREFIX) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	cmake --build $(BUILD) --target $(TARGET) --parallel $(JOBS)

install: build ## install the extension, and the library under PREFIX; DESTDIR is honoured
	$(MAKE) -s -C extension PG_CONFIG=$(PG_CONFIG) DESTDIR=$(DESTDIR) install
	DESTDIR=$(DESTDIR) cmake --install $(BUILD)

all: build # what PGXN's client asks for

deb: deps ## build the Debian packages, for each server of this release, into build/deb
	@tests/support/deps debhelper dpkg-dev postgresql-server-dev-all
	@debian/build $(BUILD)/deb

demo: TARGET = orders_server
demo: deps build ## play the whole story against a throw-away server (KEEP=1 leaves it running)
	@client/examples/demo

check: deps build ## build and run every test; nothing is installed into the system
	@tests/support/deps gnuplot-nox graphviz gunicorn pgbouncer php-cli php-pgsql python3-flask python3-psycopg python3-psycopg-pool spin
	@command -v npm >/dev/null || tests/support/deps nodejs npm
	@tests/run

check-crash: TARGET = crash_tests
check-crash: deps build ## kill servers and connections under load, then compare effects with answers (ROUNDS=, SEED=)
	@tests/crash/run

check-anomalies: TARGET = anomalies
check-anomalies: deps build ## let the N-th allocation, SPI call, call of libpq or use of the socket fail, for every N (GTEST_FILTER=)
	@tests/anomalies/run

check-matrix: ## run make check on newer Debian releases with newer servers (root; some minutes each)
	@tests/matrix

check-citus: build ## run SQL and HTTP tests on a Citus cluster: CITUS="host=... dbname=..." of an empty database on its coordinator
	@tests/citus "$(CITUS)"

check-packages: ## install the Debian packages into a chroot, play the story there, remove them (root; some minutes)
	@tests/packages

check-upgrade: ## test pg_upgrade from PostgreSQL 15 to 17 in a chroot that holds both (root; some minutes)
	@tests/matrix upgrade

analyze: deps ## look through the product's sources with clang-tidy and cppcheck (some minutes)
	@tests/support/deps clang-tidy cppcheck
	@tests/analyze

coverage: deps ## measure which lines the tests reach (some minutes); under 90 percent fails
	@tests/support/deps gcovr
	@tests/coverage

check-sanitizers: deps ## run the tests under the address, undefined behaviour and thread sanitizers
	@tests/support/deps pgbouncer
	@tests/sanitize

installcheck: ## run the SQL tests against the installed extension on a running server
	$(MAKE) -s -C extension PG_CONFIG=$(PG_CONFIG) installcheck

bench: deps ## measure side by side, as ratios, and write docs/benchmarks (BENCH="keyed_write cleanup" chooses)
	@tests/support/deps gnuplot-nox libsimdjson-dev
	@command -v npm >/dev/null || tests/support/deps nodejs npm
	@$(MAKE) --no-print-directory build
	@tests/bench/run $(BENCH)

docs: TARGET = orders_server idempotency-openapi
docs: deps build ## build the documentation as a site into build/docs/html, and check it
	@tests/support/deps doxygen furo graphviz python3-breathe python3-myst-parser python3-sphinx
	@tests/docs
	@$(MAKE) --no-print-directory codegen-check
	@tests/site

lint: ## check scripts and texts
	@tests/lint

format: ## format the C++ sources
	@git ls-files '*.cpp' '*.hpp' | xargs clang-format -i

generated = client/examples/orders_server/operations.hpp
write_operations = $(BUILD)/idempotency-openapi operations --cpp --namespace orders::operations client/examples/openapi.yaml
codegen: ## write what is generated: the example's operations, and what docs show of the product (after make build)
	@$(write_operations) >$(BUILD)/operations.hpp && mv $(BUILD)/operations.hpp $(generated)
	@docs/site/generated write

codegen-check: ## fail when that is stale
	@$(write_operations) | diff $(generated) - || { echo "not ok $(generated) is stale; run: make codegen"; exit 1; }
	@echo 'ok $(generated) is up to date'
	@docs/site/generated check

arch: ## check which part includes which
	@tests/arch

migrations-lock: ## lock new migrations by their hash
	@migrations/migrate lock

migrations-lint: ## check hashes, numbers and sections of the migrations
	@migrations/migrate lint

clean: ## remove what was built
	$(MAKE) -s -C extension PG_CONFIG=$(PG_CONFIG) clean
	rm -rf $(BUILD) $(BUILD).log
