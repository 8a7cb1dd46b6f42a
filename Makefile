# The verbs of this project. `make` alone lists them.

PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo
# `release` is what is installed, `quick` what `make test` builds (Cargo.toml).
PROFILE := $(or $(TRIB_PROFILE),release)
TARGET := $(or $(CARGO_TARGET_DIR),target)/$(PROFILE)
# Where `build` notes TARGET for `install-files`, which does not get CARGO_TARGET_DIR and TRIB_PROFILE through sudo.
BUILD_NOTE ?= target/last-build
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
# Options of `trib bench compare` for `make bench`: BENCH=--quick takes some ten minutes.
# Words of bench/mpi/run for `make bench-mpi`: BENCH='8x4 together', BENCH=--table.
BENCH ?=
# What `make test-apps` runs, all without a word: APPS='lammps mpi4py/2', APPS=--list.
APPS ?=
# What `make test-apps-lab` runs: words of cells; without one it goes on with all of them.
CELLS ?=
# What `make test-torch` runs: TORCH='collectives/4 faults', TORCH=all, TORCH=--list.
TORCH ?=
# How long `make fuzz` runs, in seconds, over all targets.
TIME ?= 60
# The seed of its draws; 0: a new one each time.
SEED ?= 0
# How many rounds `make rounds` plays, and the seed of the first.
ROUNDS ?= 100
FROM ?= 1
# Compilers of the MPIs that programs here may use. Make takes no output of a shell that ends with 127, as one does that looks
# for a program in vain.
MPICCS ?= $(shell for compiler in mpicc mpicc.openmpi mpicc.mpich; do command -v $$compiler || true; done)
# The soname carries the major version: programs built against another one must not load this
# library.
SONAME := libtributary.so.$(firstword $(subst ., ,$(VERSION)))

.PHONY: help demo demo-torch test test-long conformance conformance-valgrind conformance-sanitizers conformance-mutants misuse mutants fuzz models miri rounds recovery-cost test-aarch64 test-apps test-apps-lab test-torch test-gpu bench-mpi bench-torch wheel bench build lint install install-files staged-files strip-installed uninstall deb package-test dependencies

# A blank would end a path early, and the rest of it would count as another one.
ifneq ($(filter install install-files staged-files uninstall,$(MAKECMDGOALS)),)
ifneq ($(words $(abspath $(PREFIX)))-$(words x$(DESTDIR)x),1-1)
$(error PREFIX is "$(PREFIX)" and DESTDIR "$(DESTDIR)": name a PREFIX, and let neither path have a blank in it)
endif
endif

help: ## show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 25

demo: ## train a network under MPI, with and without Tributary, and show what the tree did
	@scripts/demo

demo-torch: build ## train with PyTorch's DDP, by Gloo and through the tree, and show what the tree did; torch is downloaded once
	-@scripts/install-dependencies --torch
	@scripts/demo-torch

test: ## everything that decides whether a change is good: style, unit tests, system tests
	@scripts/test

test-long: build ## the system tests that `make test` has no time for
	tests/run --long

conformance: build ## the libsharp_coll API by its checklist, on 1 to 8 processes over a fabric of its own
	@scripts/on-fabric sharp-coll/conformance/run

conformance-mutants: build ## libraries that are broken on purpose, and the items of the checklist that see it
	@scripts/on-fabric sharp-coll/conformance/mutants/run

# Memcheck knows no vector code by hand (the suppressions) and takes no 4 GiB of memory (C55).
MEMCHECK = valgrind -q --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite --error-exitcode=9 \
	--suppressions=$(CURDIR)/sharp-coll/conformance/valgrind.supp
conformance-valgrind: build ## the checklist under valgrind, on 1 and 2 processes: no error, nothing lost
	@scripts/on-fabric sharp-coll/conformance/run --ranks 1,2 --except C55 --under '$(MEMCHECK)'

conformance-sanitizers: build ## checklist and misuse with sanitizers, in the programs and (with a nightly Rust) in the library
	@scripts/on-fabric sharp-coll/sanitizers/run

misuse: build ## the libsharp_coll API misused at random, over a fabric of its own
	@scripts/on-fabric sharp-coll/misuse/run

mutants: ## break the protocol core in known ways and show that the simulator notices each
	@tests/mutants/run

fuzz: ## arbitrary bytes at every parser, hostile peers at core and worker, hostile tenants at the manager, under libFuzzer: TIME=600 (seconds, over all)
	@# Without the engine, which is C++ and needs no lints.
	$(CARGO) clippy --release --locked --manifest-path fuzz/Cargo.toml --no-default-features --target-dir target/fuzz-lint -- -D warnings
	@fuzz/run --time $(TIME) --seed $(SEED)

models: ## what shares memory without a lock, the product's files in every order of steps under loom
	$(CARGO) clippy --release --locked --manifest-path models/Cargo.toml --target-dir target/models -- -D warnings
	@$(CARGO) run --quiet --release --locked --manifest-path models/Cargo.toml --target-dir target/models

miri: ## wire, cores and memory under Miri, where a nightly Rust has it; else it says so
	@scripts/miri

rounds: build ## jobs whose nodes are killed, stopped and cut off, in a laboratory: ROUNDS=1000, FROM=1
	tests/rounds/run --rounds $(ROUNDS) --from $(FROM)

recovery-cost: build ## what it costs that jobs go on when a node dies: instructions of a rank, bytes on the wire (valgrind)
	tests/cost/run

test-aarch64: ## build for aarch64 and run there, emulated, what can depend on the processor
	@scripts/test-aarch64

# The packages come first: some of our libraries are built where their MPI is.
test-apps: ## applications that others wrote, plainly and through the tree (APPS=lammps, APPS='--resume --within 9', APPS=--list)
	@scripts/install-dependencies --apps
	@$(MAKE) --no-print-directory build
	tests/apps/run $(APPS)

test-apps-lab: build ## the same on eight hosts of a laboratory, in pairs with plain Open MPI; nine minutes at a time (CELLS=melt:4:free)
	@scripts/install-dependencies --apps
	tests/apps/in_lab $(CELLS)

test-torch: build ## the backend for PyTorch: collectives, training, failures; the first time torch is downloaded (TORCH=collectives/4)
	-@scripts/install-dependencies --torch
	tests/torch/run $(TORCH)

# The folder can be carried to a machine with a GPU, where its program `run` is the same.
test-gpu: build ## collectives over memory of a GPU, on this machine's; without one its program ends with 77
	@tests/gpu/pack $(TARGET) $(abspath $(or $(CARGO_TARGET_DIR),target))/gpu
	@$(or $(CARGO_TARGET_DIR),target)/gpu/run

bench-mpi: build ## MPI's collectives by Open MPI alone and through the tree, in turn, in laboratories and on one host; an hour (BENCH='8x4 together', BENCH=--table)
	bench/mpi/run $(BENCH)

bench-torch: build ## PyTorch with Tributary, Gloo and MPI in a laboratory: collectives and training, half an hour (BENCH='8x1 training', BENCH=--table)
	@scripts/install-dependencies --torch
	bench/torch/run $(BENCH)

wheel: build ## the package for Python, one wheel for Python 3.11 and later and torch 2.6 and later, in target/wheel
	python3 -m pip wheel --quiet --no-deps --wheel-dir target/wheel ./python

bench: build ## Tributary and every peer, measured in a laboratory on this machine and written to docs/performance.md
	-@scripts/install-dependencies --bench
	@$(MAKE) --no-print-directory -C bench/peers OUTPUT=$(abspath $(TARGET))/bench
	$(TARGET)/trib bench compare --write-docs docs $(BENCH)

lint: ## formatting and lints, as `make test` wants them
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --workspace --all-targets -- -D warnings
	$(CARGO) clippy --release -p trib-wire -- -D warnings
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) fmt --manifest-path models/Cargo.toml --check
	@scripts/check-dependencies

# One call builds the whole workspace: with fewer packages Cargo would choose other features for the
# crates that they share, and build these twice. Programs linked with the library look for its
# soname, in the build folder as after installation.
build: ## binary and libraries, in target/release
	$(CARGO) build --profile $(PROFILE) --workspace
	ln -sf libtributary.so $(TARGET)/$(SONAME)
	ln -sf libsharp_coll.so $(TARGET)/libsharp_coll.so.5
	ln -sf libnccl_net_tributary.so $(TARGET)/libnccl-net-tributary.so
	@# One library for each MPI at hand; the default one first, which may be one of the others under another name.
	set -e; for compiler in $(MPICCS); do \
		$(MAKE) -C mpi MPICC=$$compiler LIBDIR=$(abspath $(TARGET)) BUILD=$(abspath $(TARGET))/mpi; done
	$(MAKE) -C sharp-coll/tools LIBDIR=$(abspath $(TARGET)) BUILD=$(abspath $(TARGET))/sharp-coll
	$(MAKE) -C sharp-coll/coll_test INCLUDE=../include LIBDIR=$(abspath $(TARGET)) BUILD=$(abspath $(TARGET))/sharp-coll \
		RPATH='$$$$ORIGIN/../lib:$$$$ORIGIN/..'
	@# A checkout that cannot be written is built elsewhere all the same.
	-@mkdir -p '$(dir $(BUILD_NOTE))' && echo '$(TARGET)' > '$(BUILD_NOTE)'

dependencies: ## install the Debian packages that are missing (root or sudo)
	@scripts/install-dependencies

# Debug lines are four fifths of what is built. SPLIT_DEBUG=1 puts them beside the installed files,
# into folders .debug.
INSTALLED_BINARIES = $(addprefix $(DESTDIR)$(PREFIX)/bin/,trib sharp_hello sharp_coll_dump_config sharp_coll_test) \
	$(wildcard $(DESTDIR)$(PREFIX)/lib/libtributary.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/libsharp_coll.so.5 \
	$(DESTDIR)$(PREFIX)/lib/libnccl-net-tributary.so $(DESTDIR)$(PREFIX)/lib/libtrib_mpi*.so $(DESTDIR)$(PREFIX)/lib/tributary/openmpi/*.so)

install: build ## build, and install under PREFIX (default /usr/local), below DESTDIR if set; SPLIT_DEBUG=1 keeps debug lines beside
	@$(MAKE) --no-print-directory install-files

# Whoever installs may have a umask that lets nobody else read. SELF: with --dry-run nothing is installed.
SELF = $(MAKE)
install-files: ## install what is built, without cargo: `make build && sudo make install-files`
	@scripts/check-build '$(TARGET)' '$(BUILD_NOTE)'
	@umask 022 && scripts/install-staged '$(DESTDIR)' '$(abspath $(PREFIX))' $(SELF) --no-print-directory staged-files PREFIX='$(abspath $(PREFIX))'

uninstall: ## remove what was installed under PREFIX, below DESTDIR if set, and nothing else
	@scripts/uninstall '$(DESTDIR)$(abspath $(PREFIX))'

# All files at their paths below a DESTDIR that is empty.
staged-files:
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin lib/pkgconfig include/sharp/api share/tributary/bench/peers \
		share/modulefiles/tributary share/sharp/examples/mpi/coll)
	install -m 755 $(TARGET)/trib $(DESTDIR)$(PREFIX)/bin/trib
	install -m 755 $(TARGET)/libtributary.so $(DESTDIR)$(PREFIX)/lib/libtributary.so.$(VERSION)
	ln -sf libtributary.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(PREFIX)/lib/libtributary.so
	install -m 755 $(TARGET)/libtrib_mpi.so $(TARGET)/libtrib_mpi_*.so $(DESTDIR)$(PREFIX)/lib/
	@# It is there where an Open MPI with its inner headers is.
	set -e; for component in $(wildcard $(TARGET)/tributary/openmpi/*.so); do \
		install -D -m 755 -t $(DESTDIR)$(PREFIX)/lib/tributary/openmpi $$component; done
	install -m 644 capi/include/tributary.h $(DESTDIR)$(PREFIX)/include/tributary.h
	install -m 755 $(TARGET)/libsharp_coll.so $(DESTDIR)$(PREFIX)/lib/libsharp_coll.so.5
	ln -sf libsharp_coll.so.5 $(DESTDIR)$(PREFIX)/lib/libsharp_coll.so
	install -m 755 $(TARGET)/libnccl_net_tributary.so $(DESTDIR)$(PREFIX)/lib/libnccl-net-tributary.so
	install -m 644 sharp-coll/include/sharp/api/*.h $(DESTDIR)$(PREFIX)/include/sharp/api/
	install -m 755 $(addprefix $(TARGET)/sharp-coll/,sharp_hello sharp_coll_dump_config sharp_coll_test) $(DESTDIR)$(PREFIX)/bin/
	install -m 644 sharp-coll/coll_test/*.[ch] sharp-coll/coll_test/Makefile $(DESTDIR)$(PREFIX)/share/sharp/examples/mpi/coll/
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' sharp-coll/sharp_coll.pc.in \
		> $(DESTDIR)$(PREFIX)/lib/pkgconfig/sharp_coll.pc
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' capi/tributary.pc.in \
		> $(DESTDIR)$(PREFIX)/lib/pkgconfig/tributary.pc
	cp -R examples $(DESTDIR)$(PREFIX)/share/tributary/
	@# The checkout may be its owner's alone.
	chmod -R u+w,a+rX $(DESTDIR)$(PREFIX)/share/tributary/examples
	install -m 644 bench/peers/*.[ch] bench/peers/gloo.py bench/peers/Makefile $(DESTDIR)$(PREFIX)/share/tributary/bench/peers/
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' deploy/modulefiles/tributary.in \
		> $(DESTDIR)$(PREFIX)/share/modulefiles/tributary/$(VERSION)
	@$(MAKE) --no-print-directory strip-installed
	$(TARGET)/trib service install --units-only --prefix $(PREFIX) --root $(DESTDIR) >/dev/null

# A make of its own: the files are looked for when they are there.
strip-installed:
	scripts/strip-installed $(if $(SPLIT_DEBUG),--split) $(INSTALLED_BINARIES)

deb: ## build the Debian package, in target/deb
	@scripts/make-deb

package-test: deb ## install the package in a clean root, run a job, remove it (root, debootstrap, a mirror)
	@tests/package/run
	@tests/package/run --boot
