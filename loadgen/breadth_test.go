package main

// The breadth run, with two limitkv in this process as the servers: every command that is not left out has a form, and forms
// are measured.

import (
	"slices"
	"strings"
	"testing"
)

// formless are commands without a form that succeeds, and the reason.
var formless = map[string]string{
	"restore":     "its argument is a payload of DUMP",
	"object|freq": "it needs a policy of eviction that counts",
}

func TestBreadth(t *testing.T) {
	b := &breadth{rounds: 2}
	for range 2 {
		target := startServer(t)
		w, err := dial(target.addr, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.conn.Close() })
		b.servers = append(b.servers, &breadthServer{&instance{target: target}, w})
	}
	if err := b.measure(4, "get,lpush,zadd,zunionstore,geosearch,config|get,xreadgroup"); err != nil {
		t.Fatal(err)
	}
	if len(b.rows) != 7 || len(b.without) != 0 {
		t.Errorf("%d rows, no forms of %v", len(b.rows), b.without)
	}
	for _, r := range b.rows {
		if r.forms == 0 {
			t.Errorf("%s has no forms", r.name)
		}
	}
	b.add(breadthRow{name: "get", size: 4, micros: [2]float64{0, 1e9}})
	if i := slices.IndexFunc(b.rows, func(r breadthRow) bool { return r.name == "get" }); len(b.rows) != 7 || b.rows[i].micros[0] != 0 || b.rows[i].micros[1] == 1e9 {
		t.Errorf("%d rows after a second pass", len(b.rows))
	}
	b.conditions = "Nothing else ran."
	if text := b.document(0); !strings.Contains(text, "\n\nConditions: Nothing else ran.\n\n") || !strings.Contains(text, "| CONFIG GET | 4 |") || !strings.Contains(text, "| ZUNIONSTORE | 4 |") {
		t.Error(text)
	}

	docs, err := askDocs(b.servers[0].wire)
	if err != nil {
		t.Fatal(err)
	}
	with, left := 0, 0
	for _, d := range docs {
		name := strings.Join(d.name, "|")
		if d.leftOut() {
			left++
			continue
		}
		forms, err := b.forms(&d, 4)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(forms) == 0 && formless[name] == "" && !ownGroup(d.group) {
			t.Errorf("%s has no form that is answered without an error", name)
		}
		with++
	}
	if with < 200 || left > 150 {
		t.Errorf("%d commands have forms, %d are left out", with, left)
	}
	for _, x := range leftOut {
		if !slices.ContainsFunc(docs, func(d documented) bool {
			name := strings.Join(d.name, "|")
			return name == x || strings.HasSuffix(x, "|") && strings.HasPrefix(name, x)
		}) {
			t.Errorf("%s is left out, and is no command", x)
		}
	}
}

// ownGroup tells whether only limitkv has the commands of a group.
func ownGroup(group string) bool {
	return slices.Contains([]string{"lock", "ratelimit", "delayqueue", "test"}, group)
}
