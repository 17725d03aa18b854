// Everything that a database holds, read with commands, in a form that can be compared as text: type, encoding,
// contents. Deadlines are kept apart, since two servers set them at slightly different times.

package peer

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// content is what one key holds.
type content struct {
	text      string
	deadlines []int64 // unix ms of the key, then of its fields by name; -1 for none
}

// deadlineSlackMillis is how far apart two servers may set the same relative deadline.
const deadlineSlackMillis = 3000

func nearDeadlines(a, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] == b[i] {
			continue
		}
		if d := a[i] - b[i]; a[i] < 0 || b[i] < 0 || d > deadlineSlackMillis || d < -deadlineSlackMillis {
			return false
		}
	}
	return true
}

// readers are how the contents of a type are read, and how its elements are grouped where their order is open (0: the
// order counts).
var readers = map[string]struct {
	command []string // the key goes in place of the empty word
	group   int
}{
	"string": {[]string{"GET", ""}, 0},
	"list":   {[]string{"LRANGE", "", "0", "-1"}, 0},
	"zset":   {[]string{"ZRANGE", "", "0", "-1", "WITHSCORES"}, 0},
	"hash":   {[]string{"HGETALL", ""}, 2},
	"set":    {[]string{"SMEMBERS", ""}, 1},
	"stream": {[]string{"XRANGE", "", "-", "+"}, 0},
}

// CompareKeyspaces reads the selected database of both connections and describes the first difference, what the first
// of them keeps and what the second does; what is "" where both keep the same.
func CompareKeyspaces(wantOf, gotOf *Conn) (what, want, got string, err error) {
	a, err := dump(wantOf)
	if err != nil {
		return "", "", "", err
	}
	b, err := dump(gotOf)
	if err != nil {
		return "", "", "", err
	}
	for _, key := range union(a, b) {
		if a[key].text != b[key].text {
			return Quote(key) + " is kept differently", a[key].text, b[key].text, nil
		}
		if !nearDeadlines(a[key].deadlines, b[key].deadlines) {
			return Quote(key) + " has other deadlines", fmt.Sprint(a[key].deadlines), fmt.Sprint(b[key].deadlines), nil
		}
	}
	return "", "", "", nil
}

func union(a, b map[string]content) []string {
	var keys []string
	for k := range a {
		keys = append(keys, k)
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	return keys
}

func dump(c *Conn) (map[string]content, error) {
	keys, err := c.Do("KEYS", "*")
	if err != nil {
		return nil, err
	}
	out := map[string]content{}
	for _, k := range keys.Items {
		key := k.Text
		var replies []string
		ask := func(args ...string) Value {
			v, e := c.Do(args...)
			if e != nil && err == nil {
				err = e
			}
			return v
		}
		kind := ask("TYPE", key)
		replies = append(replies, kind.String(), ask("OBJECT", "ENCODING", key).String())
		entry := content{deadlines: []int64{integer(ask("PEXPIRETIME", key))}}
		if r, ok := readers[kind.Text]; ok {
			args := append([]string(nil), r.command...)
			args[1] = key
			v := ask(args...)
			if r.group > 0 {
				replies = append(replies, grouped(v, r.group)...)
			} else {
				replies = append(replies, v.String())
			}
			if kind.Text == "hash" {
				for _, f := range fieldNames(v) {
					d := ask("HPEXPIRETIME", key, "FIELDS", "1", f)
					if len(d.Items) == 1 {
						entry.deadlines = append(entry.deadlines, integer(d.Items[0]))
					}
				}
			}
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", key, err)
		}
		entry.text = strings.Join(replies, " ")
		out[key] = entry
	}
	return out, nil
}

func integer(v Value) int64 {
	n, err := strconv.ParseInt(v.Text, 10, 64)
	if err != nil {
		return -3
	}
	return n
}

// grouped are the elements, n at a time, in one order.
func grouped(v Value, n int) []string {
	var out []string
	for i := 0; i+n <= len(v.Items); i += n {
		var b strings.Builder
		for _, item := range v.Items[i : i+n] {
			b.WriteString(item.String() + " ")
		}
		out = append(out, b.String())
	}
	sort.Strings(out)
	return out
}

// fieldNames are the fields of an HGETALL, sorted.
func fieldNames(v Value) []string {
	var out []string
	for i := 0; i < len(v.Items); i += 2 {
		out = append(out, v.Items[i].Text)
	}
	sort.Strings(out)
	return out
}
