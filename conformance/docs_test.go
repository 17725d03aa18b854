// What COMMAND DOCS says of arguments must be what the real Redis says, since redis-cli and code generators read it:
// their names, types, tokens, flags and nesting. Summaries are limitkv's own words.
package conformance

import (
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

// docsDifferences are commands whose documentation differs on purpose, and why.
var docsDifferences = map[string]string{}

func TestCommandDocs(t *testing.T) {
	oracle, tested := redis(t), peer.LimitKV(t)
	want, got := docs(t, oracle), docs(t, tested)
	compared, arguments := 0, 0
	for name, w := range want {
		g, ok := got[name]
		if !ok || docsDifferences[name] != "" {
			continue
		}
		compared++
		arguments += strings.Count(w, "type=")
		if w != g {
			t.Errorf("%s\n  want %s\n  got  %s", name, w, g)
		}
	}
	t.Logf("%d commands and %d arguments compared", compared, arguments)
	if compared < 100 || arguments < 300 {
		t.Error("that is too few")
	}
}

// docs reads COMMAND DOCS and returns what is compared of each command, as a text.
func docs(t *testing.T, s *peer.Server) map[string]string {
	t.Helper()
	c := s.Dial(t)
	if v, err := c.Do("HELLO", "3"); err != nil || v.IsError() {
		t.Fatalf("%s: HELLO 3: %v %v", s.Name, v, err)
	}
	v, err := c.Do("COMMAND", "DOCS")
	if err != nil || v.IsError() {
		t.Fatalf("%s: COMMAND DOCS: %v %v", s.Name, v, err)
	}
	out := map[string]string{}
	addDocs(out, v)
	return out
}

func addDocs(out map[string]string, commands peer.Value) {
	for i := 0; i+1 < len(commands.Items); i += 2 {
		name, fields := commands.Items[i].Text, fieldsOf(commands.Items[i+1])
		var b strings.Builder
		for _, f := range []string{"since", "group", "deprecated_since"} {
			fmt.Fprintf(&b, "%s=%s ", f, fields[f].Text)
		}
		b.WriteString(arguments(fields["arguments"]))
		out[name] = b.String()
		addDocs(out, fields["subcommands"])
	}
}

func fieldsOf(v peer.Value) map[string]peer.Value {
	out := map[string]peer.Value{}
	for i := 0; i+1 < len(v.Items); i += 2 {
		out[v.Items[i].Text] = v.Items[i+1]
	}
	return out
}

// arguments is a list of arguments as a text.
func arguments(list peer.Value) string {
	var all []string
	for _, v := range list.Items {
		a := fieldsOf(v)
		text := a["name"].Text + " type=" + a["type"].Text
		for _, f := range []string{"token", "key_spec_index"} {
			if v, ok := a[f]; ok {
				text += " " + f + "=" + v.Text
			}
		}
		var flags []string
		for _, f := range a["flags"].Items {
			flags = append(flags, f.Text)
		}
		sort.Strings(flags)
		text += " " + strings.Join(flags, "+") + arguments(a["arguments"])
		all = append(all, text)
	}
	if all == nil {
		return ""
	}
	return "{" + strings.Join(all, "; ") + "}"
}
