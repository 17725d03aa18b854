// The scripts of the users and of the project, each over its whole scenario. The users' scripts are no part of the
// project: LIMITKV_SCRIPTS names their folder, else it is ../shared/scripts beside the checkout.
package conformance

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestOwnScripts runs the project's scripts, of the same shapes as those of the users.
func TestOwnScripts(t *testing.T) {
	tellAll(t, &scriptFolder{dir: scriptsDir, texts: map[string]string{}}, ownScenarios)
}

func TestUsersScripts(t *testing.T) {
	dir := os.Getenv("LIMITKV_SCRIPTS")
	if dir == "" {
		dir = filepath.FromSlash("../../shared/scripts")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.lua"))
	if err != nil || len(files) == 0 {
		if _, err := os.Stat(filepath.FromSlash("../../shared")); err == nil && os.Getenv("CI") != "" {
			t.Fatalf("no scripts in %s", dir)
		}
		t.Skipf("no scripts in %s; LIMITKV_SCRIPTS names the folder", dir)
	}
	var told []scenario
	for _, s := range usersScenarios {
		if _, err := os.Stat(filepath.Join(dir, s.script+".lua")); err == nil {
			told = append(told, scenario{s.script + " " + s.name, s.steps})
		}
	}
	// Each script of the folder has a scenario.
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".lua")
		if !slices.ContainsFunc(usersScenarios, func(s usersScenario) bool { return s.script == name }) {
			t.Errorf("%s has no scenario", name)
		}
	}
	tellAll(t, &scriptFolder{dir: dir, texts: map[string]string{}}, told)
}

// usersScenario is a scenario of one of the users' scripts.
type usersScenario struct {
	script string
	name   string
	steps  func(r *rand.Rand) []call
}

// second is a little more than the shortest window that the scripts can be given.
const second = 1050 * time.Millisecond

var usersScenarios = []usersScenario{
	{"filter", "fills, refuses, recovers", func(*rand.Rand) []call {
		var steps []call
		for range 5 {
			steps = append(steps, script("filter", keys("user:1"), 3, 1))
		}
		steps = append(steps, script("filter", keys("user:2"), 0, 100), command("TTL", "user:1"), pause(second))
		return append(steps, script("filter", keys("user:1"), 3, 100), command("TTL", "user:1"), script("filter", keys("user:1"), "x", 1), script("filter", keys("user:1")))
	}},
	{"limit2", "counts in its window", func(*rand.Rand) []call {
		var steps []call
		for range 4 {
			steps = append(steps, script("limit2", keys("ip"), 1))
		}
		steps = append(steps, pause(second), script("limit2", keys("ip"), 100), command("TTL", "ip"), command("PERSIST", "ip"))
		return append(steps, script("limit2", keys("ip"), 50), command("TTL", "ip"), script("limit2", keys("other"), "soon"), script("limit2", keys()))
	}},
	{"consume", "early and due members", func(r *rand.Rand) []call {
		steps := []call{script("consume", keys("q"), 100), command("ZADD", "q", 100, "a", 105, "b", 105, "c", 110.5, "d", "1e3", "e"), script("consume", keys("q"), 99)}
		for _, now := range []any{100, 100, 105, 105, 105, 110, 110.5, "1e3", 5000} {
			steps = append(steps, script("consume", keys("q"), now))
		}
		for range 200 {
			steps = append(steps, command("ZADD", "r", r.IntN(100), fmt.Sprint("m", r.IntN(50))), script("consume", keys("r"), r.IntN(100)))
		}
		return append(steps, script("consume", keys("r"), "never"), script("consume", keys("r")), command("SET", "s", 1), script("consume", keys("s"), 1))
	}},
	{"rate_limiter_init", "sets once", func(*rand.Rand) []call {
		return []call{script("rate_limiter_init", keys("lim"), 5, 1000, 0), script("rate_limiter_init", keys("lim"), 9, 1, 1), command("HGETALL", "lim"), script("rate_limiter_init", keys("other"), 5)}
	}},
	{"rate_limiter_acquire", "a limiter's life", acquire("rate_limiter_acquire")},
	{"rate_limiter_acquire_annotated", "a limiter's life", acquire("rate_limiter_acquire_annotated")},
	{"sliding_window", "fills, refuses, recovers", window("sliding_window")},
	{"sliding_window_first_try", "lets through what it lets through", window("sliding_window_first_try")},
	{"lock", "held, stolen from, given back, run out", func(*rand.Rand) []call {
		return []call{
			script("lock", keys("l"), "me", 1), script("lock", keys("l"), "you", 1), script("unlock", keys("l"), "you"),
			script("unlock", keys("l"), "me"), script("unlock", keys("l"), "me"), script("lock", keys("l"), "you", 1), pause(second),
			script("lock", keys("l"), "me", 100), command("TTL", "l"), command("GET", "l"), script("lock", keys("bad"), "me", "soon"), script("lock", keys("bad"), "me"),
		}
	}},
	{"unlock", "of nothing, of another type", func(*rand.Rand) []call {
		return []call{script("unlock", keys("l"), "me"), command("RPUSH", "list", 1), script("unlock", keys("list"), "me"), command("SET", "l", 12), script("unlock", keys("l"), 12), script("unlock", keys())}
	}},
}

// acquire is the life of a Redisson limiter: not set up, filling, refused with a wait, waiting exactly that long or a
// millisecond less, recovering, at random, for all clients and per client.
func acquire(name string) func(*rand.Rand) []call {
	return func(r *rand.Rand) []call {
		k := func(n string) []string {
			return keys("{"+n+"}", "{"+n+"}:value", "{"+n+"}:value:c1", "{"+n+"}:permits", "{"+n+"}:permits:c1")
		}
		take := func(n string, permits, now any) call { return script(name, k(n), permits, now, r.Float64()*1e6) }
		steps := []call{take("lim", 1, 1000), command("HSET", "{lim}", "rate", 3, "interval", 1000, "type", 0)}
		for _, at := range []int{10000, 10100, 10200, 10300, 10999, 11000, 11001, 11100, 11199, 11200, 11201} {
			steps = append(steps, take("lim", 1, at))
		}
		steps = append(steps, take("lim", 4, 20000), take("lim", 3, 20000), take("lim", 1, 20999), take("lim", 3, 21000), take("lim", 0, 21001), take("lim", 2, 40000))
		for _, limiter := range []struct{ name, kind string }{{"all", "0"}, {"each", "1"}} {
			steps = append(steps, command("HSET", "{"+limiter.name+"}", "rate", 5, "interval", 100, "type", limiter.kind))
			now := 1_700_000_000_000
			for range 200 {
				now += r.IntN(40)
				steps = append(steps, take(limiter.name, 1+r.IntN(3), now))
			}
		}
		return append(steps, take("all", "x", 1), take("all", 1, "x"), script(name, k("all")), script(name, keys("{all}"), 1, 2, 3))
	}
}

// window is the life of a sliding window.
func window(name string) func(*rand.Rand) []call {
	return func(r *rand.Rand) []call {
		var steps []call
		now, member := 100_000, 0
		at := func(t, limit int) call {
			member++
			return script(name, keys("w"), t-1000, t, limit, fmt.Sprint("m", member))
		}
		for _, t := range []int{100000, 100100, 100200, 100900, 101000, 101001, 101100, 105000} {
			steps = append(steps, at(t, 3))
		}
		for range 300 {
			now += r.IntN(300)
			steps = append(steps, at(now, 4))
		}
		return append(steps, command("ZCARD", "w"), script(name, keys("w"), "a", "b", 3, "m"), script(name, keys("w"), 1, 2, "many", "m"), script(name, keys("w")))
	}
}

var ownScenarios = []scenario{
	{"fixed_window", func(*rand.Rand) []call {
		var steps []call
		for range 5 {
			steps = append(steps, script("fixed_window", keys("fw"), 3, 1).nearly(1))
		}
		return append(steps, pause(second), script("fixed_window", keys("fw"), 3, 100).nearly(1), script("fixed_window", keys("fw"), 3, "x"), script("fixed_window", keys("new"), 3, "x"), script("fixed_window", keys()))
	}},
	{"window_log", func(r *rand.Rand) []call {
		var steps []call
		for i, now := 0, 10_000; i < 300; i++ {
			now += r.IntN(400)
			steps = append(steps, script("window_log", keys("log"), now, 1000, 3, fmt.Sprint("m", i)))
		}
		return append(steps, script("window_log", keys("log"), "x", 1000, 3, "m"), script("window_log", keys("log"), 1))
	}},
	{"permits", func(r *rand.Rand) []call {
		k := keys("{p}", "{p}:value", "{p}:permits")
		steps := []call{script("permits_take", k, 1, 1000, 1), script("permits_setup", keys("{p}"), "rate", 5, "interval", 100), script("permits_setup", keys("{p}"), "rate", 9)}
		for i, now := 0, 10_000; i < 400; i++ {
			now += r.IntN(40)
			steps = append(steps, script("permits_take", k, 1+r.IntN(3), now, i))
		}
		return append(steps, script("permits_take", k, 6, 90000, 1), script("permits_take", k, "x", 90000, 1), script("permits_take", k, 1, 90000, "x"))
	}},
	{"bucket", func(r *rand.Rand) []call {
		var steps []call
		for i, now := 0, 1_700_000_000_000; i < 400; i++ {
			now += r.IntN(700)
			steps = append(steps, script("bucket", keys(fmt.Sprint("b", i%3)), 5, "2.5", now, []string{"1", "2", "0.7", "3"}[r.IntN(4)]))
		}
		return append(steps, script("bucket", keys("b0"), 5, 0, 1, 1), script("bucket", keys("b0")))
	}},
	{"gcra", func(r *rand.Rand) []call {
		var steps []call
		for i, now := 0, 1_700_000_000.25; i < 400; i++ {
			now += float64(r.IntN(700)) / 1000
			steps = append(steps, script("gcra", keys("g"), 5, 3, 1, fmt.Sprintf("%.3f", now), 1+r.IntN(2)))
		}
		return append(steps, script("gcra", keys("g"), 5, 0, 1, 1, 1))
	}},
	{"queue_take", func(r *rand.Rand) []call {
		var steps []call
		for range 200 {
			steps = append(steps, command("ZADD", "q", r.IntN(100), fmt.Sprint("m", r.IntN(50))), script("queue_take", keys("q"), r.IntN(100), r.IntN(3)))
		}
		return append(steps, script("queue_take", keys("q"), "x", 1), script("queue_take", keys("q"), 1, "x"), script("queue_take", keys("q"), "+inf", -1))
	}},
	{"queue_lease", func(r *rand.Rand) []call {
		var steps []call
		k := keys("{q}", "{q}:leases", "{q}:attempts")
		for range 200 {
			steps = append(steps, command("ZADD", "{q}", r.IntN(100), fmt.Sprint("m", r.IntN(9))), script("queue_lease", k, r.IntN(100), 30))
		}
		return append(steps, script("queue_lease", k, "x", 1))
	}},
	{"lock", func(*rand.Rand) []call {
		take := func(who string, ms any) call { return script("lock_take", keys("l"), who, ms).nearly(500) }
		give := func(who string) call { return script("lock_give", keys("l"), who) }
		return []call{
			take("me", 90000), take("me", 90000), take("you", 90000), give("you"), give("me"), take("you", 1), give("me"), give("me"),
			take("you", 40), pause(100 * time.Millisecond), take("me", 90000), give("you"), command("HGETALL", "l"), take("x", "soon"),
		}
	}},
}
