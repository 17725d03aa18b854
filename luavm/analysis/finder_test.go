package analysis

import (
	"fmt"
	"testing"
)

// args makes arguments of a pattern: "?" is unknown, "*" any number of unknown ones.
func args(list ...string) (out []Arg) {
	for _, s := range list {
		switch s {
		case "?":
			out = append(out, Arg{})
		case "*":
			out = append(out, Arg{Rest: true})
		default:
			out = append(out, Arg{Const: true, Value: s})
		}
	}
	return out
}

func TestSpecs(t *testing.T) {
	one := Spec{Index: 1, Step: 1}
	all := Spec{Index: 1, Last: -1, Step: 1}
	pairs := Spec{Index: 1, Last: -1, Step: 2}
	butLast := Spec{Index: 1, Last: -2, Step: 1}
	numbered := Spec{Index: 2, Numbered: true, NumAt: 0, FirstAt: 1, Step: 1}
	streams := Spec{Index: 4, Last: -1, Step: 1, Limit: 2}
	for _, c := range []struct {
		spec Spec
		args []Arg
		want string
	}{
		{one, args("get", "?"), "[1] false true"},
		{one, args("get"), "[] false true"},
		{one, args("zadd", "?", "*"), "[1] false true"},
		{one, args("get", "*"), "[] true true"},
		{all, args("del", "?", "?"), "[1 2] false true"},
		{all, args("del", "?", "*"), "[1] true true"},
		{pairs, args("mset", "?", "?", "?", "?"), "[1 3] false true"},
		{pairs, args("mset", "?", "?", "*"), "[1] true true"},
		{butLast, args("blpop", "?", "?", "?"), "[1 2] false true"},
		{butLast, args("blpop", "?", "?", "*"), "[1 2] true true"},
		{numbered, args("z", "d", "2", "?", "?", "w", "?"), "[3 4] false true"},
		{numbered, args("z", "d", "?", "?", "?", "w"), "[3 4 5] false true"},
		{numbered, args("z", "d", "2", "?", "*"), "[3] true true"},
		{numbered, args("z", "d", "1", "?", "*"), "[3] false true"},
		{numbered, args("z", "d", "0", "?"), "[] false true"},
		{numbered, args("z", "d", "-1", "?"), "[] false true"},
		{numbered, args("z", "d", "x", "?"), "[3] false true"},
		{numbered, args("z", "d"), "[] false true"},
		{numbered, args("z", "d", "99999999999999", "?"), "[] false true"},
		{streams, args("xread", "COUNT", "1", "streams", "?", "?", "?", "?"), "[4 5] false true"},
		{streams, args("xread", "COUNT", "1", "streams", "?", "*"), "[4] true true"},
	} {
		var keys Keys
		ok := c.spec.Find(c.args, &keys)
		if got := fmt.Sprint(keys.At, keys.Rest, ok); got != c.want {
			t.Errorf("%+v of %v: %s, want %s", c.spec, c.args, got, c.want)
		}
	}
}
