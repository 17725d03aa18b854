package notation

// The notation of arguments: the meaning of each form, errors, and the usage line made from it.

import (
	"fmt"
	"strings"
	"testing"
)

func TestSyntax(t *testing.T) {
	for _, c := range []struct{ notation, want, usage string }{
		{"", "", ""},
		{"key", "key:key@0", "key"},
		{"key...", "key:key@0 multiple", "key [key ...]"},
		{"[pattern]", "pattern:pattern optional", "[pattern]"},
		{"source:key destination:key@1", "source:key@0 destination:key@1", "source destination"},
		{"n:integer x:double at:unix-time s:string", "n:integer x:double at:unix-time s:string", "n x at s"},
		{"[GET]", "get:pure-token=GET optional", "[GET]"},
		{"[sorting=ALPHA]", "sorting:pure-token=ALPHA optional", "[ALPHA]"},
		{"op=(equal== | approximately=~)", "op:oneof(equal:pure-token== approximately:pure-token=~)", "<=|~>"},
		{`(x)`, "error", ""},
		{"[COUNT count:integer]", "count:integer=COUNT optional", "[COUNT count]"},
		{"[GET pattern:pattern...+]", "pattern:pattern=GET optional multiple multiple_token", "[GET pattern [GET pattern ...]]"},
		{"[ID id:integer...]", "id:integer=ID optional multiple", "[ID id [id ...]]"},
		{"when=(NX | XX)", "when:oneof(nx:pure-token=NX xx:pure-token=XX)", "<NX|XX>"},
		{"[when=(NX | EX s:integer)]", "when:oneof(nx:pure-token=NX s:integer=EX) optional", "[NX|EX s]"},
		{"data={field:string value:string}...", "data:block(field:string value:string) multiple", "field value [field value ...]"},
		{"[LIMIT limit={a:integer b:integer}]", "limit:block=LIMIT(a:integer b:integer) optional", "[LIMIT a b]"},
		{"[AUTH who=(a:string | b:string)]", "who:oneof=AUTH(a:string b:string) optional", "[AUTH <a|b>]"},
		{"a=(b=(x | y) | c={NO ONE})", "a:oneof(b:oneof(x:pure-token=X y:pure-token=Y) c:block(no:pure-token=NO one:pure-token=ONE))", "<<X|Y>|NO ONE>"},
		{"[a={x:string [Y]}...]", "a:block(x:string y:pure-token=Y optional) optional multiple", "[x [Y] [x [Y] ...]]"},
		{"[key", "error", ""}, {"key]", "error", ""}, {"a=(", "error", ""}, {"a=()", "error", ""},
		{"a={x:string", "error", ""}, {"a | b", "error", ""}, {"[]", "error", ""}, {"a={b | c}", "error", ""},
	} {
		args, err := Parse(c.notation)
		if err != nil {
			if c.want != "error" {
				t.Errorf("%q: %v", c.notation, err)
			}
			continue
		}
		if got := told(args); got != c.want {
			t.Errorf("%q\n got %s\nwant %s", c.notation, got, c.want)
		}
		if got := Line(args, " "); got != c.usage {
			t.Errorf("%q: usage %q, not %q", c.notation, got, c.usage)
		}
	}
}

// told formats arguments with all their fields.
func told(args []*Arg) string {
	var all []string
	for _, a := range args {
		text := a.Name + ":" + a.Type
		if a.KeySpec >= 0 {
			text += fmt.Sprintf("@%d", a.KeySpec)
		}
		if a.Token != "" {
			text += "=" + a.Token
		}
		if len(a.Args) > 0 {
			text += "(" + told(a.Args) + ")"
		}
		all = append(all, strings.Join(append([]string{text}, a.Flags()...), " "))
	}
	return strings.Join(all, " ")
}

// FuzzSyntax: any text is parsed or refused, and all arguments have names.
func FuzzSyntax(f *testing.F) {
	f.Add("key [when=(NX | EX s:integer)] data={field:string value:string}...+ [pattern@2]")
	f.Fuzz(func(t *testing.T, notation string) {
		args, err := Parse(notation)
		if err == nil {
			_ = Line(args, " ")
		}
	})
}
