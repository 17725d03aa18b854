# limitkv's commands for people and for CI; `make help` lists them, in groups that begin with ##@. .ci/run runs the same targets.
# Nothing but Go is needed, except where the line says so.

GO         ?= go
BIN        ?= bin/limitkv
PORT       ?= 6379
# Without the tables of a debugger, which are a third of the binary; LDFLAGS= keeps them, for perf and dlv.
LDFLAGS    ?= -s -w
FUZZTIME   ?= 30s
COMMANDS   ?= 120000
BENCHTIME  ?= 200ms
CRASHES    ?= 10000
ROUNDS     ?= 300
MACHINES   ?= 1000
CHAOSTIME  ?= 1h
CHAOSKEYS  ?= 20000
BENCHCOUNT ?= 5
# Benchmarks whose allocations do not depend on time or chance.
BENCHCHECK ?= ./luavm ./luavm/arg ./luavm/cjson ./luavm/cmsgpack ./resp ./resp/number ./engine/limiter
BASELINE   ?= loadgen/baselines/times.txt
# What bench-compare runs, flags of that program in place of those that write its document, and the documents.
OF         ?= matrix
ARGS       ?=
DOCUMENTS   = matrix:docs/BENCHMARKS.md breadth:docs/BREADTH.md scripts:docs/SCRIPTS.md
BENCHSTAT  ?= golang.org/x/perf/cmd/benchstat@v0.0.0-20230113213139-801c7ef9e5c5

# Where CI is set, a missing Redis is a failure; on a person's machine the comparison is skipped with a message.
ORACLE      = $(if $(CI),-oracle-required,)
# Packages are built for all platforms unless told (PLATFORMS=linux/amd64,darwin/arm64), and tested for that of the machine.
PLATFORMS ?= all
DIST      ?= dist
LANGUAGES ?= python npm java debian container

# The folders that are modules of their own.
MODULES     = . loadgen rls packages/integrations/nethttp

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.7.0

.DEFAULT_GOAL := help
.PHONY: help run build rls packages release test test-race lint check generate record profile fuzz crash chaos conformance conformance-clients conformance-tcl programs packages-test bench bench-check bench-compare soak $(BIN) $(BIN)-benchmark

##@ use
help: ## list the targets
	@awk -F ':.*## ' '/^##@ / { print substr($$0, 5) ":" } /^[a-z-]+:.*## / { line = sprintf("  %-19s", $$1); n = split($$2, word, " "); \
	  for (i = 1; i <= n; i++) { if (length(line) + length(word[i]) > 115) { print line; line = sprintf("%21s", "") } line = line " " word[i] } print line }' Makefile

run: $(BIN) ## start a server on 127.0.0.1:6379 that keeps nothing on disk (PORT=n for another port)
	./$(BIN) --port $(PORT) --save ""

build: $(BIN) $(BIN)-benchmark ## compile the server to bin/limitkv, the load generator to bin/limitkv-benchmark

$(BIN):
	CGO_ENABLED=0 $(GO) build -ldflags "$(LDFLAGS)" -o $(BIN) ./cmd/limitkv

$(BIN)-benchmark:
	cd loadgen && $(GO) build -o $(abspath $(BIN))-benchmark .

rls: ## compile limitkv-rls, the gateway for Envoy, to bin/limitkv-rls
	cd rls && CGO_ENABLED=0 $(GO) build -o ../bin/limitkv-rls ./cmd/limitkv-rls

packages: ## write everything that is published to dist/ (PLATFORMS=linux/amd64 for some; needs Java and Maven)
	$(GO) run ./packages -out $(DIST) -platforms $(PLATFORMS)

release: ## write a release of the version in CHANGELOG.md to dist/, each binary built twice and compared
	@test -z "$$(git status --porcelain)" || { echo "commit everything first"; exit 1; }
	$(GO) run ./packages -out $(DIST)/$(shell awk '/^## / { print $$2; exit }' CHANGELOG.md) -platforms $(PLATFORMS) -twice

##@ develop
# Tests and the servers that they start are compiled without the profile, and without C: else all packages are compiled a
# second time.
test: ## run the tests of the server; needs nothing but Go (LONG=1 with those that take longer than 15 seconds)
	CGO_ENABLED=0 $(GO) vet -pgo=off ./...
	CGO_ENABLED=0 LIMITKV_LONG=$(LONG) $(GO) test -pgo=off ./...
	cd loadgen && CGO_ENABLED=0 LIMITKV_LONG=$(LONG) $(GO) test -pgo=off ./...

# -short leaves out tests of size and memory, in which there is nothing for the race detector to find.
test-race: ## run the tests under the race detector (needs a C compiler), with those of the gateway for Envoy; SERVERS=1 for those of persistence and replication, whose servers are processes, instead (8 minutes)
ifdef SERVERS
	$(GO) build -race -o $(BIN)-race ./cmd/limitkv
	@rm -f $(BIN)-race.report.*
	LIMITKV_BIN=$(CURDIR)/$(BIN)-race GORACE=log_path=$(CURDIR)/$(BIN)-race.report LIMITKV_LONG=1 $(GO) test -count=1 $(addprefix ./conformance/,crash failover files follow replicas)
	@! cat $(BIN)-race.report.* 2>/dev/null
else
	LIMITKV_LONG=1 $(GO) test -race -short -pgo=off $$($(GO) list ./... | grep -v '/conformance\|/examples\|/packages') ./conformance/storm
	cd rls && $(GO) test -race ./...
endif

lint: ## gofmt, go vet for Linux, macOS and Windows, staticcheck (fetched at its pinned version)
	@test -z "$$(gofmt -l .)" || { echo "gofmt these:"; gofmt -l .; exit 1; }
	@set -e; for module in $(MODULES); do cd $(CURDIR)/$$module; \
	  for system in linux darwin windows; do echo "go vet $$module for $$system"; GOOS=$$system $(GO) vet -pgo=off ./...; done; \
	  echo "staticcheck $$module"; GOFLAGS=-pgo=off $(GO) run $(STATICCHECK) ./...; \
	done

check: lint test test-race ## everything to run before a change is handed in

generate: ## write the generated files anew
	$(GO) generate ./...

record: ## ask a real Redis 8.0 again for every recorded reply, and for the effects of every conversation; with REDIS7_SERVER (7.0) and VALKEY_SERVER (9.1) also for the files of other servers, which limitkv is to read
	$(GO) test -count=1 ./conformance -run '^TestRecorded(Effects)?$$' -record -oracle-required
	$(if $(REDIS7_SERVER),$(GO) test -count=1 ./conformance/files -run '^TestFilesOfOtherServers$$' -record)

profile: $(BIN)-benchmark ## load the server with all workloads and write cmd/limitkv/default.pgo, by which it is compiled (needs what bench-compare needs)
	$(BIN)-benchmark record
	CGO_ENABLED=0 $(GO) build -tags profile -pgo=off -o $(BIN)-profile ./cmd/limitkv
	$(BIN)-benchmark profile -limitkv $(BIN)-profile

fuzz: ## run every fuzz target for FUZZTIME (default 30s; 50000x for so many runs); SERVER=1 to send random commands of all families to a server with the race detector instead (SEED=n repeats them)
ifdef SERVER
	LIMITKV_LONG=1 $(GO) test -race -count=1 -v -timeout 0 ./conformance/storm -for $(FUZZTIME) $(if $(SEED),-seed $(SEED))
else
	@set -e; grep -ro '^func Fuzz[A-Za-z0-9]*' --include=*_test.go --exclude-dir=rls . | sort | while IFS=: read -r file func; do \
	  echo "$$file $${func#func }"; (cd $$(dirname $$file) && $(GO) test -run '^$$' -fuzz "^$${func#func }$$" -fuzztime $(FUZZTIME) </dev/null); \
	done
endif

crash: ## crash the log's files at random calls, CRASHES seeds of them (default 10000), servers on them MACHINES times, and the server ROUNDS times by kill -9
	$(GO) test -count=1 -v -timeout 30m -run '^Test(Crash|ErrorsInTurn)$$' ./engine/journal -crash.runs $(CRASHES)
	$(GO) test -count=1 -v -timeout 60m -run '^TestMachine$$' ./commands/persistence -machine.runs $(MACHINES)
	$(GO) test -count=1 -v -timeout 0 ./conformance/crash -rounds $(ROUNDS)

chaos: ## have servers follow each other over links that break, and take each other's place, for CHAOSTIME (default 1h) on CHAOSKEYS keys (SEED=n draws the same again; REDIS_SERVER, VALKEY_SERVER)
	LIMITKV_LONG=1 $(GO) test -count=1 -v -timeout 0 ./conformance/follow -run '^TestChaos$$' -chaos $(CHAOSTIME) -keys $(CHAOSKEYS) $(if $(SEED),-seed $(SEED))

conformance: ## compare with a real Redis 8.0 (REDIS_SERVER, or redis-server in PATH): COMMANDS random commands, scripts, bad input
	$(GO) test -count=1 -v -timeout 15m ./conformance -thorough -commands $(COMMANDS) $(ORACLE)

conformance-clients: $(BIN) ## run the real clients of Java, Go, Node and Python against the server, write docs/clients.md (LARGE=n, to 7, for larger arguments; PROVE=1 to replay the journal); SUITES=1 for the own test suites of Go's and Python's (many minutes; QUICK=1 for few), FAILOVER=1 to have clients work through failovers of Sentinel (ONLY=go, FAULTS=kill,stop,cut) instead
ifdef SUITES
	$(GO) run ./conformance/suites $(if $(QUICK),-quick) $(if $(PROVE),-prove)
else ifdef FAILOVER
	$(GO) run ./conformance/failover -server $(BIN) -only "$(ONLY)" $(if $(FAULTS),-faults $(FAULTS))
else
	LARGE=$(LARGE) $(GO) run ./conformance/clients $(if $(PROVE),-prove)
endif

conformance-tcl: $(BIN) ## run Redis's own Tcl tests against the server (REDIS_SRC names a built source tree; ALL=1 with those known to fail that wait for minutes, SENTINEL=1 for those of Sentinel instead)
	$(GO) run ./conformance/tcl $(if $(SENTINEL),-sentinel) $(if $(ALL),-all -timeout 10m)

programs: $(BIN) ## run the checks of packages/integrations/ with the real frameworks, and the programs of examples/, whose READMEs say what they print (ONLY=python-limits,order-timeout for some)
	$(GO) run ./conformance/programs -server $(BIN) $(if $(ONLY),-only $(ONLY))

packages-test: packages ## install what packages wrote as a stranger would, and test it (needs Python, Node, Java, Maven)
	@set -e; for language in $(LANGUAGES); do echo "== $$language"; packages/$$language/install-test $(DIST); done

##@ measure
bench: ## run the Go benchmarks (BENCHTIME=n, BENCHCOUNT=n each) and compare with the baseline; WRITE=1 makes them the baseline: on the machine, and before the change, to compare with
	@mkdir -p bin
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -count $(BENCHCOUNT) ./... > bin/bench.txt
	$(if $(WRITE),grep -v 'no test files\|^PASS\|^ok' bin/bench.txt > $(BASELINE),$(GO) run $(BENCHSTAT) $(BASELINE) bin/bench.txt)

bench-check: $(BIN)-benchmark ## fail where Go benchmarks allocate over 15 %, or take over 30 % more instructions, than their baselines (needs valgrind, else skipped); WRITE=1 writes these anew
	$(GO) test -run '^$$' -bench . -benchmem -benchtime 50x -count 3 -cpu 2 $(BENCHCHECK) | $(BIN)-benchmark allocations $(if $(WRITE),-write)
	$(BIN)-benchmark instructions $(if $(WRITE),-write)

bench-compare: build ## compare with Redis and Valkey (REDIS_SERVER, VALKEY_SERVER, or in PATH; libraries in their languages), write docs/BENCHMARKS.md (QUICK=1 for a first look); OF=breadth for every command (docs/BREADTH.md), scripts (docs/SCRIPTS.md), replicas or single requests instead; ARGS="-only get" gives that part flags and writes nothing
	$(if $(ARGS)$(filter-out matrix,$(OF)),,-$(BIN)-benchmark record)
	$(BIN)-benchmark $(OF) -limitkv $(BIN) $(or $(ARGS),$(patsubst $(OF):%,-out %,$(filter $(OF):%,$(DOCUMENTS)))) $(if $(QUICK),-quick)

soak: build ## load the server with mixed traffic for SOAKTIME (default 1h) and fail if throughput, p99.9 or memory are over 5 % worse in the last sixth than in the second
	$(BIN)-benchmark soak -limitkv $(BIN) $(if $(SOAKTIME),-duration $(SOAKTIME))
