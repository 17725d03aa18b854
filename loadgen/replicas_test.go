package main

// The cost of replicas is measured on servers that follow, and a replica with all data has no lag.

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestReplicas(t *testing.T) {
	if os.Getenv("LIMITKV_LONG") == "" { // as Long of conformance/peer
		t.Skip("takes long: make test LONG=1")
	}
	bin := filepath.Join(t.TempDir(), "limitkv")
	if out, err := exec.Command("go", "build", "-pgo=off", "-o", bin, "../cmd/limitkv").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c, err := crewOf(program{name: "limitkv", path: bin, args: serverArgs}, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer c.stop()
	set := find("set")
	p := &params{connections: 5, pipeline: 16, threads: 1, keys: 1000, duration: 300 * time.Millisecond, valueBytes: 32}
	if err := c.prepare(set, p); err != nil {
		t.Fatal(err)
	}
	if err := c.measure(set, p); err != nil {
		t.Fatal(err)
	}
	if r := c.rounds[0]; r.Requests == 0 || r.CPU == 0 || c.behind == 0 || len(c.lags) == 0 {
		t.Errorf("%d requests of %v µs, %v lags, the replica took %d ns", r.Requests, r.CPU, c.lags, c.behind)
	}
	var at [2]*wire
	for i, addr := range []string{c.addr, c.replicas[1].addr} {
		if at[i], err = dial(addr, ""); err != nil {
			t.Fatal(err)
		}
		defer at[i].close()
	}
	if _, err := lag(at[0], at[1]); err != nil {
		t.Fatal(err)
	}
	keys, err := at[0].text("DBSIZE")
	if has, err2 := at[1].text("DBSIZE"); err != nil || err2 != nil || has != keys || keys == "0" {
		t.Errorf("the replica has %s keys of %s: %v %v", has, keys, err, err2)
	}
	if _, err := at[0].field("replication", "no_such_field"); err == nil {
		t.Error("a field is found that is not there")
	}
}
