// COMMAND DOCS: group, since and arguments of each command are the real Redis's, so that redis-cli's hints and the
// clients that are generated from them are the same. Summaries are our own words.
package conformance

import (
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

// docsCompared are the properties that are facts. "arguments" is the whole tree: names, types, tokens, flags.
var docsCompared = []string{"since", "group", "arguments", "doc_flags", "deprecated_since"}

func TestCommandDocs(t *testing.T) {
	oracle, tested := redis(t), peer.LimitKV(t)
	want, got := docs(t, oracle), docs(t, tested)
	compared := 0
	for name, w := range want {
		g, ok := got[name]
		if !ok {
			continue
		}
		compared++
		for _, property := range docsCompared {
			a, b := withoutSince(propertyOf(w, property)), withoutSince(propertyOf(g, property))
			if tableDifferences[name+" "+property] == "" && !a.Equal(b) {
				t.Errorf("%s: %s\n  want %v\n  got  %v", name, property, a, b)
			}
		}
		if propertyOf(g, "summary").Text == "" {
			t.Errorf("%s has no summary", name)
		}
		if propertyOf(g, "summary").Text == propertyOf(w, "summary").Text && len(propertyOf(w, "summary").Text) > sameSummaryMax {
			t.Errorf("%s has Redis's own summary: %s", name, propertyOf(w, "summary").Text)
		}
	}
	t.Logf("%d commands and subcommands compared", compared)
	if compared < 100 {
		t.Errorf("only %d commands were compared", compared)
	}
}

// sameSummaryMax is up to which length two summaries may be the same by the subject's nature ("Ping the server.").
const sameSummaryMax = 40

// docs reads COMMAND DOCS and returns the properties by name, subcommands as "parent|sub".
func docs(t *testing.T, s *peer.Server) map[string]peer.Value {
	t.Helper()
	v, err := s.Dial(t).Do("COMMAND", "DOCS")
	if err != nil || v.IsError() {
		t.Fatalf("%s: COMMAND DOCS: %v %v", s.Name, v, err)
	}
	out := map[string]peer.Value{}
	var add func(pairs []peer.Value)
	add = func(pairs []peer.Value) {
		for i := 0; i+1 < len(pairs); i += 2 {
			out[pairs[i].Text] = pairs[i+1]
			add(propertyOf(pairs[i+1], "subcommands").Items)
		}
	}
	add(v.Items)
	return out
}

// withoutSince drops from a tree of arguments the version that each came with: limitkv has had all of them from the
// start.
func withoutSince(v peer.Value) peer.Value {
	out := peer.Value{Kind: v.Kind, Text: v.Text, Null: v.Null}
	for i := 0; i < len(v.Items); i++ {
		if v.Items[i].Text == "since" && i+1 < len(v.Items) {
			i++
			continue
		}
		out.Items = append(out.Items, withoutSince(v.Items[i]))
	}
	return out
}

// propertyOf is a value of a flat array of names and values.
func propertyOf(v peer.Value, name string) peer.Value {
	for i := 0; i+1 < len(v.Items); i += 2 {
		if v.Items[i].Text == name {
			return v.Items[i+1]
		}
	}
	return peer.Value{}
}
