package config_test

// Parameters: what CONFIG SET takes, in which form it is shown, and what is refused.

import (
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

func TestParameters(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	for _, p := range []struct{ name, set, get string }{
		{"notify-keyspace-events", "KEA", "AKE"}, {"notify-keyspace-events", "Kgx$", "g$xK"}, {"notify-keyspace-events", "", ""},
		{"notify-keyspace-events", "Q", "-Invalid event class character. Use 'Ag$lshzxeKEtmdn'."},
		{"notify-keyspace-events", "Anm", "Am"}, {"notify-keyspace-events", "glshzxe$td", "A"},
		{"save", "900 1 300 10", "900 1 300 10"}, {"save", "900", "-Invalid save parameters"}, {"save", "", ""},
		{"maxmemory-policy", "ALLKEYS-LFU", "allkeys-lfu"},
		{"maxmemory-policy", "x", "-argument(s) must be one of the following: volatile-lru, volatile-lfu, volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction"},
		{"maxmemory-clients", "5%", "5%"}, {"maxmemory-clients", "101%", "-percentage argument must be less or equal to 100"},
		{"maxmemory-clients", "1mb", "1048576"}, {"maxmemory-clients", "x", "-argument must be a memory or percent value"},
		{"latency-tracking-info-percentiles", "50 99.99", "50 99.99"},
		{"latency-tracking-info-percentiles", "101", "-latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"},
		{"latency-tracking-info-percentiles", "x", "-Invalid latency-tracking-info-percentiles parameters"},
		{"client-output-buffer-limit", "normal 1mb 2kb 3", "normal 1048576 2048 3 slave 268435456 67108864 60 pubsub 33554432 8388608 60"},
		{"client-output-buffer-limit", "replica 0 0 0 pubsub 0 0 0", "normal 1048576 2048 3 slave 0 0 0 pubsub 0 0 0"},
		{"client-output-buffer-limit", "normal 1 2", "-Wrong number of arguments in buffer limit configuration."},
		{"client-output-buffer-limit", "master 0 0 0", "-Invalid client class specified in buffer limit configuration."},
		{"client-output-buffer-limit", "normal 0 0 -1", "-Error in hard, soft or soft_seconds setting in buffer limit configuration."},
		{"appendonly", "maybe", "-argument must be 'yes' or 'no'"}, {"appendonly", "no", "no"},
		{"hz", "20", "20"}, {"hz", "x", "-argument couldn't be parsed into an integer"},
		{"slave-priority", "7", "7"}, {"port", "1", "-limitkv listens where it was started to"},
		{"databases", "3", "-can't set immutable config"},
	} {
		got := c.Do("CONFIG", "SET", p.name, p.set)
		if want, refused := strings.CutPrefix(p.get, "-"); refused {
			if got != "-ERR CONFIG SET failed (possibly related to argument '"+p.name+"') - "+want {
				t.Errorf("%s %q: %s", p.name, p.set, got)
			}
			continue
		}
		if got != "OK" {
			t.Errorf("%s %q: %s", p.name, p.set, got)
		}
		c.Want("["+p.name+" "+p.get+"]", "CONFIG", "GET", p.name)
	}
	c.Want("[replica-priority 7]", "CONFIG", "GET", "replica-priority")
	if got := c.Do("CONFIG", "GET", "*"); strings.Count(got, " ") < 400 {
		t.Errorf("CONFIG GET * tells little: %s", got)
	}
}

// A parameter that is requested in several cases is replied once, in the first form.
func TestNamesInSeveralCases(t *testing.T) {
	c := livetest.Start(t).Client()
	c.Want("[MaxMemory 0]", "CONFIG", "GET", "MaxMemory", "maxmemory", "MAXMEMORY", "maxmemor[y]")
	c.Want("[maxmemory 0 HZ 10]", "CONFIG", "GET", "maxmemory", "HZ", "hz")
}
