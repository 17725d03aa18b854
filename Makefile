# limitkv's commands for people and for CI; `make help` lists them. Each target is what .ci/run runs as well.
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
MACHINES ?= 1000
CHAOSTIME  ?= 1h
CHAOSKEYS  ?= 20000
BENCHCOUNT ?= 5
# Benchmarks whose allocations do not depend on time or chance.
BENCHCHECK ?= ./luavm ./luavm/arg ./luavm/cjson ./luavm/cmsgpack ./resp ./resp/number ./engine/limiter
BASELINE   ?= cmd/limitkv-benchmark/baselines/times.txt
BENCHSTAT  ?= golang.org/x/perf/cmd/benchstat@v0.0.0-20230113213139-801c7ef9e5c5

# Where CI is set, a missing Redis is a failure; on a person's machine the comparison is skipped with a message.
ORACLE      = $(if $(CI),-oracle-required,)
# Packages are built for all platforms unless told (PLATFORMS=linux/amd64,darwin/arm64), and tested for that of the machine.
PLATFORMS ?= all
DIST      ?= dist
LANGUAGES ?= python npm java debian container

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.7.0

.DEFAULT_GOAL := help
.PHONY: help run server build test test-race lint fuzz fuzz-server bench bench-baseline bench-compare bench-breadth bench-replicas bench-scripts bench-workloads bench-libraries crash chaos conformance conformance-clients conformance-suites conformance-tools conformance-tcl conformance-sentinel conformance-failover record record-files packages packages-test release generate check

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-19s %s\n", $$1, $$2 }' Makefile

run: server ## start a server on 127.0.0.1:6379 that keeps nothing on disk (PORT=n for another port)
	./$(BIN) --port $(PORT) --save ""

server:
	CGO_ENABLED=0 $(GO) build -ldflags "$(LDFLAGS)" -o $(BIN) ./cmd/limitkv

build: server ## compile the server to bin/limitkv, the load generator to bin/limitkv-benchmark
	$(GO) build -o $(BIN)-benchmark ./cmd/limitkv-benchmark

# Tests are compiled without the profile: with it cmd/limitkv needs all packages a second time. The server that they start has it.
test: ## run all tests; needs nothing but Go
	$(GO) vet -pgo=off ./...
	$(GO) test -pgo=off ./...

# -short leaves out tests of size and memory, in which there is nothing for the race detector to find.
test-race: ## run the tests under the race detector (needs a C compiler), but those whose servers are processes without it
	$(GO) test -race -short -pgo=off $$($(GO) list ./... | grep -v '/conformance\|/limitkv-benchmark\|/examples\|/packages') ./conformance/storm

.PHONY: test-race-servers
test-race-servers: ## run the tests of persistence and replication with servers that have the race detector (8 minutes)
	$(GO) build -race -o $(BIN)-race ./cmd/limitkv
	@rm -f $(BIN)-race.report.*
	LIMITKV_BIN=$(CURDIR)/$(BIN)-race GORACE=log_path=$(CURDIR)/$(BIN)-race.report $(GO) test -count=1 $(addprefix ./conformance/,crash failover files follow replicas)
	@! cat $(BIN)-race.report.* 2>/dev/null

lint: ## gofmt, go vet (for Linux and macOS), staticcheck (fetched at its pinned version)
	@test -z "$$(gofmt -l .)" || { echo "gofmt these:"; gofmt -l .; exit 1; }
	$(GO) vet -pgo=off ./...
	GOOS=darwin $(GO) vet -pgo=off ./...
	GOFLAGS=-pgo=off $(GO) run $(STATICCHECK) ./...

fuzz: ## run every fuzz target for FUZZTIME (default 30s; 50000x for so many runs)
	@set -e; grep -ro '^func Fuzz[A-Za-z0-9]*' --include=*_test.go --exclude-dir=rls . | sort | while IFS=: read -r file func; do \
	  echo "$$file $${func#func }"; $(GO) test -run '^$$' -fuzz "^$${func#func }$$" -fuzztime $(FUZZTIME) $$(dirname $$file) </dev/null; \
	done

fuzz-server: ## send random commands of all families, for FUZZTIME, to a server with the race detector (SEED=n repeats them)
	$(GO) test -race -count=1 -v -timeout 0 ./conformance/storm -for $(FUZZTIME) $(if $(SEED),-seed $(SEED))

bench: ## run the Go benchmarks (BENCHTIME=n, BENCHCOUNT=n each) and compare with the baseline
	@mkdir -p bin
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -count $(BENCHCOUNT) ./... > bin/bench.txt
	$(GO) run $(BENCHSTAT) $(BASELINE) bin/bench.txt

bench-baseline: ## run the Go benchmarks and keep them as the baseline: on the machine, and before the change, to compare with
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -count $(BENCHCOUNT) ./... | grep -v 'no test files\|^PASS\|^ok' > bin/baseline.txt
	mv bin/baseline.txt $(BASELINE)

bench-compare: build ## compare with Redis and Valkey (REDIS_SERVER, VALKEY_SERVER, or in PATH), write docs/BENCHMARKS.md; QUICK=1 for a first look
	@mkdir -p docs
	-$(BIN)-benchmark record
	$(BIN)-benchmark matrix -limitkv $(BIN) -out docs/BENCHMARKS.md $(if $(QUICK),-quick)

bench-breadth: build ## compare the processor time of every command with Redis's (REDIS_SERVER, or in PATH), write docs/BREADTH.md; ONLY=get,set for some, PASSES=3 for a machine that is not quiet, CONDITIONS=text to say so
	$(BIN)-benchmark breadth -limitkv $(BIN) $(if $(ONLY),-only $(ONLY),-out docs/BREADTH.md) $(if $(PASSES),-passes $(PASSES)) $(if $(CONDITIONS),-conditions "$(CONDITIONS)")

bench-replicas: build ## measure what replicas cost their primary, how far they are behind, and a full synchronisation, beside Redis's (REDIS_SERVER, or in PATH)
	$(BIN)-benchmark replicas -limitkv $(BIN)

.PHONY: bench-single
bench-single: build ## measure single requests, and pipelines of 16, by valkey-benchmark beside Redis, Valkey and a program that answers always the same (REDIS_SERVER, VALKEY_SERVER, or in PATH)
	$(BIN)-benchmark single -limitkv $(BIN)
	$(BIN)-benchmark single -limitkv $(BIN) -connections 50 -pipeline 16

bench-scripts: build ## compare the processor time of scripts that compute with Redis's (REDIS_SERVER, or in PATH), write docs/SCRIPTS.md; ONLY=loop for some
	$(BIN)-benchmark scripts -limitkv $(BIN) $(if $(ONLY),-only $(ONLY),-out docs/SCRIPTS.md)

.PHONY: soak
soak: build ## load the server with mixed traffic for SOAKTIME (default 1h) and fail if throughput, p99.9 or memory are over 5 % worse in the last sixth than in the second
	$(BIN)-benchmark soak -limitkv $(BIN) $(if $(SOAKTIME),-duration $(SOAKTIME))

.PHONY: bench-check
bench-check: ## fail where Go benchmarks allocate over 15 %, or take over 30 % more instructions, than their baselines (needs valgrind, else skipped); WRITE=1 writes these anew
	$(GO) test -run '^$$' -bench . -benchmem -benchtime 50x -count 3 -cpu 2 $(BENCHCHECK) | $(GO) run ./cmd/limitkv-benchmark allocations $(if $(WRITE),-write)
	$(GO) run ./cmd/limitkv-benchmark instructions $(if $(WRITE),-write)

bench-workloads: build ## record what the libraries of conformance-clients send, for bench-compare (REDIS_SERVER; needs their languages)
	$(BIN)-benchmark record

.PHONY: profile
profile: ## load the server with all workloads and write cmd/limitkv/default.pgo, by which it is compiled; needs what bench-workloads records
	CGO_ENABLED=0 $(GO) build -tags profile -pgo=off -o $(BIN)-profile ./cmd/limitkv
	$(GO) build -o $(BIN)-benchmark ./cmd/limitkv-benchmark
	$(BIN)-benchmark profile -limitkv $(BIN)-profile

bench-libraries: build ## let real libraries work on limitkv and Redis in turn (LIBRARIES=bullmq,asynq for some; REDIS_SERVER, VALKEY_SERVER)
	$(BIN)-benchmark matrix -limitkv $(BIN) -only end-to-end -libraries "$(LIBRARIES)" $(if $(QUICK),-quick)

crash: ## crash the log's files at random calls, CRASHES seeds of them (default 10000), servers on them MACHINES times, and the server ROUNDS times by kill -9
	$(GO) test -count=1 -v -timeout 30m -run '^Test(Crash|ErrorsInTurn)$$' ./engine/journal -crash.runs $(CRASHES)
	$(GO) test -count=1 -v -timeout 60m -run '^TestMachine$$' ./commands/persistence -machine.runs $(MACHINES)
	$(GO) test -count=1 -v -timeout 0 ./conformance/crash -rounds $(ROUNDS)

chaos: ## have servers follow each other over links that break, and take each other's place, for CHAOSTIME (default 1h) on CHAOSKEYS keys (SEED=n draws the same again; REDIS_SERVER, VALKEY_SERVER)
	$(GO) test -count=1 -v -timeout 0 ./conformance/follow -run '^TestChaos$$' -chaos $(CHAOSTIME) -keys $(CHAOSKEYS) $(if $(SEED),-seed $(SEED))

conformance: ## compare with a real Redis 8.0 (REDIS_SERVER, or redis-server in PATH): COMMANDS random commands, scripts, bad input
	$(GO) test -count=1 -v -timeout 15m ./conformance -thorough -commands $(COMMANDS) $(ORACLE)

conformance-clients: build ## run the real clients of Java, Go, Node and Python against the server, write docs/clients.md; LARGE=n (to 7) for larger arguments, PROVE=1 to replay the journal
	LARGE=$(LARGE) $(GO) run ./conformance/clients $(if $(PROVE),-prove)

conformance-suites: build ## run the own test suites of Go's and Python's clients and libraries against the server and Redis (many minutes; QUICK=1 for few, PROVE=1 to replay the journal instead of comparing)
	$(GO) run ./conformance/suites $(if $(QUICK),-quick) $(if $(PROVE),-prove)

conformance-tools: ## run redis-cli, redis-benchmark and, where they are there, redis_exporter, promtool and a browser against the server and Redis
	$(GO) test -count=1 -v ./conformance/tools

conformance-tcl: build ## run Redis's own Tcl tests against the server (REDIS_SRC=path of a built source tree; ALL=1 with those known to fail that wait for minutes)
	$(GO) run ./conformance/tcl $(if $(ALL),-all -timeout 10m)

.PHONY: rls rls-test rls-bench
rls: ## compile limitkv-rls, the gateway for Envoy, to bin/limitkv-rls
	cd rls && CGO_ENABLED=0 $(GO) build -o ../bin/limitkv-rls ./cmd/limitkv-rls

rls-bench: build rls ## compare the gateway for Envoy with envoyproxy/ratelimit on Redis (REDIS_SERVER, or in PATH)
	cd rls && $(GO) run ./bench -bin ../$(dir $(BIN))

rls-test: ## vet and test the gateway for Envoy, a module of its own, with the race detector; with Envoy from PyPI where Python is there
	cd rls && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./... && $(GO) test -race -count=1 ./...

.PHONY: integrations-test examples-test
integrations-test: build ## run the checks of integrations/ with the real frameworks (ONLY=python-limits for one)
	$(GO) run ./conformance/programs -server $(BIN) $(if $(ONLY),-only $(ONLY)) integrations

examples-test: build ## run the programs of examples/ and compare what they print with their READMEs (ONLY=order-timeout for one)
	$(GO) run ./conformance/programs -server $(BIN) $(if $(ONLY),-only $(ONLY)) examples

conformance-failover: build ## have client libraries work through failovers of Sentinel (REDIS_SERVER; needs their languages, ONLY=go for one; FAULTS=kill,stop,cut)
	$(GO) run ./conformance/failover -server $(BIN) -only "$(ONLY)" $(if $(FAULTS),-faults $(FAULTS))

conformance-sentinel: build ## run Redis's tests of Sentinel with the server as the instances that fail over (REDIS_SRC; many minutes)
	$(GO) run ./conformance/tcl -sentinel

record: ## ask a real Redis 8.0 again for every recorded reply, and for the effects of every conversation
	$(GO) test -count=1 ./conformance -run '^TestRecorded(Effects)?$$' -record -oracle-required

record-files: ## record the files of other servers anew, which limitkv is to read (REDIS7_SERVER: 7.0, VALKEY_SERVER: 9.1)
	$(GO) test -count=1 ./conformance/files -run '^TestFilesOfOtherServers$$' -record

packages: ## write everything that is published to dist/ (PLATFORMS=linux/amd64 for some; needs Java and Maven)
	$(GO) run ./packages -out $(DIST) -platforms $(PLATFORMS)

packages-test: packages ## install what packages wrote as a stranger would, and test it (needs Python, Node, Java, Maven)
	@set -e; for language in $(LANGUAGES); do echo "== $$language"; packages/$$language/install-test $(DIST); done

release: ## write a release to dist/VERSION/, each binary built twice and compared (VERSION=1.2.3)
	@test -n "$(VERSION)" || { echo "make release VERSION=1.2.3"; exit 1; }
	@test -z "$$(git status --porcelain)" || { echo "commit everything first"; exit 1; }
	$(GO) run ./packages -out $(DIST)/$(VERSION) -version $(VERSION) -platforms $(PLATFORMS) -twice

generate: ## write the generated files anew
	$(GO) generate ./...

check: lint test test-race ## everything to run before a change is handed in
