package main

// The measurements of memory make the right keys, and the keys of a cycle are gone at its end.

import "testing"

func TestLimitersOnce(t *testing.T) {
	target := startServer(t)
	if err := target.prepare(limitersOnce(), &params{keys: 1000, valueBytes: 32}); err != nil {
		t.Fatal(err)
	}
	c, err := dial(target.addr, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if n, err := c.text("DBSIZE"); err != nil || n != "1000" {
		t.Errorf("%s keys: %v", n, err)
	}
	if kind, err := c.text("TYPE", "g:000000000999"); err != nil || kind != "ratelimit" {
		t.Errorf("the last is a %s: %v", kind, err)
	}
}
