package main

// The suites that are run, and the tests of them that do not count.

import (
	"os/exec"
	"strings"
)

// suite is the tests of one package.
type suite struct {
	name string
	kind kind
	// pkg is the package's name in its registry.
	pkg string
	// tests are the packages of a Go module, the files and folders of a Python one.
	tests []string
	// pattern are, of a Go module's tests, those to run, as "go test -run" has them; all if it is empty.
	pattern string
	// ginkgo: a Go module's tests are one to Go, and have names in a report.
	ginkgo bool
	// own: the suite starts servers of its own, which nobody has prove anything.
	own bool
	// quick are those of tests that take little time.
	quick []string
	// args are arguments of the test program.
	args []string
	// env are variables of its environment.
	env []string
	// servers are what the suite wants to run, each a port and other arguments; usual if there are none.
	servers [][]string
}

// usual is a server where clients look for one.
var usual = [][]string{{"6379"}}

// kind is how the suites of a language are run.
type kind interface {
	// fetch brings a suite and what it needs to the machine, and returns the folder of its text.
	fetch(s suite) (place string, err error)
	// command returns what runs the tests, all or those named. dir is for what they leave.
	command(s suite, place, dir string, only []string) (*exec.Cmd, error)
	// results reads the tests' results from dir and from what they printed.
	results(dir, log string) (map[string]result, error)
}

var suites = []suite{
	{name: "redis_rate", kind: golang{}, pkg: "github.com/go-redis/redis_rate/v10", tests: []string{"."}, quick: []string{"."}},
	{name: "redigo", kind: golang{}, pkg: "github.com/gomodule/redigo", tests: []string{"./redis"}, quick: []string{"./redis"}, own: true},
	{name: "asynq", kind: golang{}, pkg: "github.com/hibiken/asynq", tests: []string{".", "./internal/rdb"}, quick: []string{"./internal/rdb"}},
	{name: "go-redis", kind: golang{}, pkg: "github.com/redis/go-redis/v9", tests: []string{"."}, pattern: "^TestGinkgoSuite$", ginkgo: true,
		args: []string{"-ginkgo.skip", "JSON|Search|[Tt]imeseries|Probabilistic|[Vv]ector|Sentinel|Ring|ClusterClient|Streaming"},
		env:  []string{"RE_CLUSTER=true", "REDIS_VERSION=8.0"}},
	{name: "redsync", kind: golang{}, pkg: "github.com/go-redsync/redsync/v4", tests: []string{"."}, own: true},
	{name: "rueidis", kind: golang{}, pkg: "github.com/redis/rueidis", tests: []string{"."}, pattern: "^TestSingleClientIntegration$|^TestNegative"},
	{name: "kombu", kind: python{}, pkg: "kombu", tests: []string{"t/integration/test_redis.py"}, quick: []string{"t/integration/test_redis.py"},
		args: []string{"-o", "python_classes=test_*", "-p", "no:flaky"}},
	{name: "limits", kind: python{}, pkg: "limits", tests: []string{"tests"}, quick: []string{"tests"},
		args:    []string{"-m", "(redis or unit) and not benchmark", "--ignore", "tests/benchmarks", "--ignore", "tests/integration"},
		env:     []string{"ASYNC_REDIS_IMPLEMENTATION=redispy"},
		servers: [][]string{{"7379"}, {"7389", "--requirepass", "sekret"}}},
	{name: "redis-py", kind: python{}, pkg: "redis", tests: []string{"tests"},
		quick: []string{"tests/test_commands.py", "tests/test_hash.py", "tests/test_function.py", "tests/test_lock.py", "tests/test_monitor.py",
			"tests/test_pipeline.py", "tests/test_pubsub.py", "tests/test_scripting.py"},
		// Vector sets are a module, which Redis 8 comes with.
		args: []string{"--redis-url", "redis://localhost:6379/9", "-m", "not onlycluster and not redismod and not ssl and not experimental",
			"--ignore", "tests/test_vsets.py", "--ignore", "tests/test_asyncio/test_vsets.py"}},
	{name: "rq", kind: python{}, pkg: "rq", tests: []string{"tests"}, quick: []string{"tests/test_queue.py", "tests/test_job.py", "tests/test_registry.py"}},
}

// exception is a test, or several by the beginning of their names, that needs not pass.
type exception struct {
	suite, test, reason string
}

var exceptions = []exception{
	{"go-redis", "Commands server should SlaveOf", "there are no replicas yet"},
}

// excepted says whether a test needs not pass.
func excepted(suite, test string) bool {
	for _, e := range exceptions {
		if e.suite == suite && strings.HasPrefix(test, e.test) {
			return true
		}
	}
	return false
}
