# limitkv's commands for people and for CI; `make help` lists them. Each target is what .ci/run runs as well.
# Nothing but Go is needed, except where the line says so.

GO         ?= go
BIN        ?= bin/limitkv
PORT       ?= 6379
FUZZTIME   ?= 30s
COMMANDS   ?= 120000
BENCHTIME  ?= 200ms
CRASHES    ?= 10000
ROUNDS     ?= 300
BENCHCOUNT ?= 5
BASELINE   ?= docs/bench-baseline.txt
BENCHSTAT  ?= golang.org/x/perf/cmd/benchstat@v0.0.0-20230113213139-801c7ef9e5c5

# Where CI is set, a missing Redis is a failure; on a person's machine the comparison is skipped with a message.
ORACLE      = $(if $(CI),-oracle-required,)
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.7.0

.DEFAULT_GOAL := help
.PHONY: help run build test test-race lint fuzz fuzz-server bench bench-baseline bench-compare bench-workloads bench-libraries crash conformance conformance-clients conformance-suites conformance-tools conformance-tcl record generate check

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-19s %s\n", $$1, $$2 }' Makefile

run: build ## start a server on 127.0.0.1:6379 that keeps nothing on disk (PORT=n for another port)
	./$(BIN) --port $(PORT) --save ""

build: ## compile the server to bin/limitkv, the load generator to bin/limitkv-benchmark
	CGO_ENABLED=0 $(GO) build -o $(BIN) ./cmd/limitkv
	$(GO) build -o $(BIN)-benchmark ./cmd/limitkv-benchmark

test: ## run all tests; needs nothing but Go
	$(GO) vet ./...
	$(GO) test ./...

test-race: ## run all tests under the race detector (needs a C compiler)
	$(GO) test -race ./...

lint: ## gofmt, go vet, staticcheck (fetched at its pinned version)
	@test -z "$$(gofmt -l .)" || { echo "gofmt these:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

fuzz: ## run every fuzz target for FUZZTIME (default 30s; 50000x for so many runs)
	@set -e; for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; done

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

bench-workloads: build ## record what the libraries of conformance-clients send, for bench-compare (REDIS_SERVER; needs their languages)
	$(BIN)-benchmark record

bench-libraries: build ## let real libraries work on limitkv and Redis in turn (LIBRARIES=bullmq,asynq for some; REDIS_SERVER, VALKEY_SERVER)
	$(BIN)-benchmark matrix -limitkv $(BIN) -only end-to-end -libraries "$(LIBRARIES)" $(if $(QUICK),-quick)

crash: ## crash the log's files at random calls, CRASHES seeds of them (default 10000), and the server ROUNDS times by kill -9
	$(GO) test -count=1 -v -timeout 30m -run '^Test(Crash|ErrorsInTurn)$$' ./engine/journal -crash.runs $(CRASHES)
	$(GO) test -count=1 -v -timeout 0 ./conformance/crash -rounds $(ROUNDS)

conformance: ## compare with a real Redis 8.0 (REDIS_SERVER, or redis-server in PATH): COMMANDS random commands, scripts, bad input
	$(GO) test -count=1 -v -timeout 15m ./conformance -thorough -commands $(COMMANDS) $(ORACLE)

conformance-clients: build ## run the real clients of Java, Go, Node and Python against the server, write docs/clients.md; LARGE=n (to 7) for larger arguments, PROVE=1 to replay the journal
	LARGE=$(LARGE) $(GO) run ./conformance/clients $(if $(PROVE),-prove)

conformance-suites: build ## run the own test suites of Go's and Python's clients and libraries against the server and Redis (many minutes; QUICK=1 for few, PROVE=1 to replay the journal instead of comparing)
	$(GO) run ./conformance/suites $(if $(QUICK),-quick) $(if $(PROVE),-prove)

conformance-tools: ## run redis-cli, redis-benchmark and, where it is there, redis_exporter against the server and Redis
	$(GO) test -count=1 -v ./conformance/tools

conformance-tcl: build ## run Redis's own Tcl tests against the server (REDIS_SRC=path of a built source tree)
	$(GO) run ./conformance/tcl

record: ## ask a real Redis 8.0 again for every recorded reply, and for the effects of every conversation
	$(GO) test -count=1 ./conformance -run '^TestRecorded(Effects)?$$' -record -oracle-required

generate: ## write the generated files anew
	$(GO) generate ./...

check: lint test test-race ## everything to run before a change is handed in
