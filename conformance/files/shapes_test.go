package files

// Values that are not as they should be. Redis looks at little of what it loads, and files are about in which former errors
// of it left their traces. What Redis serves loads here; where limitkv serves it otherwise, because Redis contradicts itself, the
// table says how. What Redis refuses, or ends by when it is read, is refused.

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/engine/rdb"
)

// outcome is what becomes of a shape.
type outcome int

const (
	served  outcome = iota // it loads
	refused                // it does not, in both
	empty                  // it has no elements: files are loaded without it, RESTORE refuses it
	deadly                 // Redis ends when it is loaded, or read; here it is refused
)

// shape is a value to load.
type shape struct {
	name    string
	kind    byte
	body    string
	outcome outcome
	// repaired: limitkv tells that it was put right.
	repaired bool
	// here is what limitkv replies, by command, where that is not what Redis replies.
	here map[string]string
	// unasked are the reading commands by which Redis ends, and which are not asked of it; others are served. here has the replies.
	unasked string
}

// readers are the commands that read a key of each type, and unordered those whose elements have no order, each of so many
// parts.
var readers = map[string][]string{
	"string": {"GET k", "STRLEN k"},
	"list":   {"LLEN k", "LRANGE k 0 -1", "LINDEX k 0", "LINDEX k -1", "OBJECT ENCODING k"},
	"set":    {"SCARD k", "SMEMBERS k", "SISMEMBER k a", "SISMEMBER k 1", "OBJECT ENCODING k"},
	"zset":   {"ZCARD k", "ZRANGE k 0 -1 WITHSCORES", "ZSCORE k a", "ZRANK k a", "ZRANGEBYSCORE k 2 2", "OBJECT ENCODING k"},
	"hash":   {"HLEN k", "HGETALL k", "HGET k f", "HPEXPIRETIME k FIELDS 2 f g", "OBJECT ENCODING k"},
	"stream": {"XLEN k", "XRANGE k - +", "XREVRANGE k + -", "XINFO STREAM k", "XINFO GROUPS k", "XINFO CONSUMERS k g", "XPENDING k g", "XPENDING k g - + 10"},
}

var unordered = map[string]int{"SMEMBERS k": 1, "HGETALL k": 2}

// keep adds a reply to what was read, as far as it does not go with the time: the fields of XINFO STREAM one by one.
func keep(got map[string]string, command string, v peer.Value) {
	got[command] = line(v)
	switch n := unordered[command]; {
	case v.IsError():
	case n > 0:
		var parts []string
		for i := 0; i+n <= len(v.Items); i += n {
			parts = append(parts, strings.Join(each(v.Items[i:i+n]), " "))
		}
		slices.Sort(parts)
		got[command] = strings.Join(parts, ", ")
	case command == "XINFO STREAM k":
		delete(got, command)
		for i := 0; i+1 < len(v.Items); i += 2 {
			got[v.Items[i].Text] = line(v.Items[i+1])
		}
	case strings.HasPrefix(command, "XINFO CONSUMERS"):
		for i := range v.Items {
			v.Items[i].Items = v.Items[i].Items[:4]
		}
		got[command] = line(v)
	case strings.HasSuffix(command, "- + 10"):
		for i := range v.Items {
			v.Items[i].Items = slices.Delete(v.Items[i].Items, 2, 3)
		}
		got[command] = line(v)
	}
}

// line is a value in one line.
func line(v peer.Value) string { return strings.Join(strings.Fields(v.String()), " ") }

func each(values []peer.Value) (out []string) {
	for _, v := range values {
		out = append(out, line(v))
	}
	return out
}

// read reads a key with all commands of its type.
func read(t *testing.T, c *peer.Conn, key, unasked string) (got map[string]string, err error) {
	t.Helper()
	v, err := c.Do("TYPE", key)
	if err != nil {
		return nil, err
	}
	got = map[string]string{}
	for _, command := range readers[v.Text] {
		if unasked != "" && strings.Contains(unasked, command) {
			got[command] = "(ends)"
			continue
		}
		args := strings.Fields(command)
		args[slices.Index(args, "k")] = key
		reply, err := c.Do(args...)
		if err != nil {
			return got, err
		}
		keep(got, command, reply)
	}
	return got, nil
}

// mustRead is read of a key with the shape, which ends no server.
func (s *shape) mustRead(t *testing.T, c *peer.Conn, key, unasked string) map[string]string {
	t.Helper()
	got, err := read(t, c, key, unasked)
	if err != nil {
		t.Fatal(s.name, err)
	}
	return got
}

// payload is what RESTORE takes.
func (s *shape) payload() string { return string(rdb.AppendFooter(append([]byte{s.kind}, s.body...))) }

// fileOf is a file of keys with these shapes, without a checksum.
func fileOf(t *testing.T, keys map[string]shape) (dir string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("REDIS0012\xfe\x00")
	for key, s := range keys {
		b.WriteString(string(s.kind) + text(key) + s.body)
	}
	b.WriteString("\xff\x00\x00\x00\x00\x00\x00\x00\x00")
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "dump.rdb"), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// compare compares what is served of a shape.
func (s *shape) compare(t *testing.T, how string, want, got map[string]string) {
	t.Helper()
	if len(got) == 0 || len(want) != len(got) {
		t.Errorf("%s, %s: nothing is read: %q, %q", s.name, how, want, got)
	}
	for command, w := range want {
		g := got[command]
		if here, differs := s.here[command]; differs {
			if g != here || g == w {
				t.Errorf("%s, %s: %s\n here %s\n want %s\nRedis %s", s.name, how, command, g, here, w)
			}
		} else if g != w {
			t.Errorf("%s, %s: %s\n here %s\nRedis %s", s.name, how, command, g, w)
		}
	}
	for command := range s.here {
		if _, is := want[command]; !is {
			t.Errorf("%s: %s is not read", s.name, command)
		}
	}
}

func allShapes() []shape { return slices.Concat(collections(), streams()) }

// TestShapesRestored gives each shape to RESTORE.
func TestShapesRestored(t *testing.T) {
	ours, theirs := peer.LimitKV(t), peer.Redis(t, required, "--crash-log-enabled", "no")
	o, r := ours.Dial(t), theirs.Dial(t)
	for _, s := range allShapes() {
		before := mustDo(t, o, "DEBUG DIGEST").Text
		repairs := repairsOf(t, o)
		wantReply, err := r.Do("RESTORE", "k", "0", s.payload())
		if err != nil && s.outcome != deadly {
			t.Fatal(s.name, err)
		}
		gotReply, failed := o.Do("RESTORE", "k", "0", s.payload())
		if failed != nil {
			t.Fatal(s.name, failed)
		}
		want, got := wantReply.String(), gotReply.String()
		if s.outcome == deadly {
			if _, readErr := read(t, r, "k", s.unasked); err == nil && want != "+OK" || readErr == nil {
				t.Errorf("%s: Redis replies %s and lives", s.name, want)
			}
			theirs = peer.Redis(t, required, "--crash-log-enabled", "no")
			r = theirs.Dial(t)
			want = badFormat
		}
		if want != got || (got == "+OK") != (s.outcome == served) {
			t.Errorf("%s: here %s, in Redis %s", s.name, got, want)
		}
		if repaired := repairsOf(t, o) - repairs; got != "+OK" && repaired != 0 || got == "+OK" && (repaired == 1) != s.repaired {
			t.Errorf("%s: repaired %d times", s.name, repaired)
		}
		if got == "+OK" && want == got {
			want, err := read(t, r, "k", s.unasked)
			if err != nil {
				t.Errorf("%s: Redis ends: %v %q", s.name, err, want)
				theirs = peer.Redis(t, required, "--crash-log-enabled", "no")
				r = theirs.Dial(t)
			}
			got := s.mustRead(t, o, "k", "")
			s.compare(t, "restored", want, got)
			loadAgain(t, o, r, &s, got)
		}
		mustDo(t, r, "DEL k")
		mustDo(t, o, "DEL k")
		if after := mustDo(t, o, "DEBUG DIGEST").Text; after != before {
			t.Errorf("%s: something is left", s.name)
		}
	}
}

// TestShapesSanitized: with sanitize-dump-payload RESTORE refuses what Redis then refuses.
func TestShapesSanitized(t *testing.T) {
	ours, theirs := peer.LimitKV(t), peer.Redis(t, required, "--crash-log-enabled", "no")
	o, r := ours.Dial(t), theirs.Dial(t)
	refusals := map[string]int{}
	for _, value := range []string{"no", "clients", "yes"} {
		mustDo(t, o, "CONFIG SET sanitize-dump-payload "+value)
		for _, s := range allShapes() {
			if s.outcome == deadly { // which Redis refuses now, or ends by
				continue
			}
			mustDo(t, r, "CONFIG SET sanitize-dump-payload "+value)
			want, err := r.Do("RESTORE", "k", "0", s.payload(), "REPLACE")
			if err != nil {
				t.Fatal(s.name, err)
			}
			got, err := o.Do("RESTORE", "k", "0", s.payload(), "REPLACE")
			if err != nil || got.String() != want.String() {
				t.Errorf("%s with %s: here %v, %v, in Redis %v", s.name, value, got, err, want)
			}
			if got.String() == badFormat {
				refusals[value]++
			}
			mustDo(t, r, "DEL k")
		}
	}
	mustDo(t, o, "CONFIG SET sanitize-dump-payload clients")
	mustDo(t, o, "ACL SETUSER default skip-sanitize-payload")
	trusted := 0
	for _, s := range allShapes() {
		if reply, err := o.Do("RESTORE", "k", "0", s.payload(), "REPLACE"); err == nil && reply.String() == badFormat && s.outcome != deadly {
			trusted++
		}
	}
	if refusals["yes"] <= refusals["no"] || refusals["clients"] != refusals["yes"] || trusted != refusals["no"] {
		t.Errorf("refused %v, of a trusted user %d", refusals, trusted)
	}
}

// loadAgain: what limitkv dumps of what it took over, both take, and limitkv has nothing to put right.
func loadAgain(t *testing.T, o, r *peer.Conn, s *shape, want map[string]string) {
	t.Helper()
	payload := mustDo(t, o, "DUMP k").Text
	repairs := repairsOf(t, o)
	for name, c := range map[string]*peer.Conn{"limitkv": o, "redis": r} {
		if reply, err := c.Do("RESTORE", "k", "0", payload, "REPLACE"); err != nil || reply.String() != "+OK" {
			t.Errorf("%s: what is dumped %s replies %v, %v", s.name, name, reply, err)
			continue
		}
		got, err := read(t, c, "k", "")
		if s.kind == 10 { // what was a ziplist is one node, which loads as a listpack
			got["OBJECT ENCODING k"] = want["OBJECT ENCODING k"]
		}
		if err != nil || !equalMaps(got, want) {
			t.Errorf("%s: dumped and restored in %s it is %q, %v, not %q", s.name, name, got, err, want)
		}
	}
	if repairsOf(t, o) != repairs {
		t.Errorf("%s: what was dumped is put right again", s.name)
	}
}

func equalMaps(a, b map[string]string) bool {
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return len(a) == len(b)
}

const badFormat = `-ERR Bad data format`

func repairsOf(t *testing.T, c *peer.Conn) int {
	t.Helper()
	n, err := strconv.Atoi(peer.Field(mustDo(t, c, "INFO stats").Text, "dump_payload_repairs"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestShapesLoaded loads all that is served from one file, and each of the others from one of its own.
func TestShapesLoaded(t *testing.T) {
	keys := map[string]shape{}
	repaired := 0
	for i, s := range allShapes() {
		if s.outcome == served || s.outcome == empty {
			keys["k"+strconv.Itoa(i)] = s
		}
		if s.repaired {
			repaired++
		}
	}
	dir := fileOf(t, keys)
	ours := peer.LimitKV(t, "--dir", dir)
	o, r := ours.Dial(t), peer.Redis(t, required, "--dir", fileOf(t, keys)).Dial(t)
	for key, s := range keys {
		want := s.mustRead(t, r, key, s.unasked)
		got := s.mustRead(t, o, key, "")
		if s.outcome == empty {
			if len(want)+len(got) > 0 {
				t.Errorf("%s: there is %q, in Redis %q", s.name, got, want)
			}
			continue
		}
		s.compare(t, "loaded", want, got)
		if s.repaired && !strings.Contains(ours.Output(), `repaired the value of key "`+key+`"`) {
			t.Errorf("%s: the log does not tell of it", s.name)
		}
	}
	if n := repairsOf(t, o); n != repaired || n < 20 {
		t.Errorf("%d were put right, want %d", n, repaired)
	}
	named, exported := told(t, "check", filepath.Join(fileOf(t, keys), "dump.rdb")), told(t, "export", "--plain", filepath.Join(fileOf(t, keys), "dump.rdb"), filepath.Join(t.TempDir(), "dump.rdb"))
	if n := strings.Count(named, " is repaired when it is loaded: "); n != repaired || !strings.Contains(exported, "repaired: "+strconv.Itoa(repaired)+" values") {
		t.Errorf("check names %d, want %d; export says %s", n, repaired, exported)
	}
	// Saved and loaded again.
	before := mustDo(t, o, "DEBUG DIGEST").Text
	mustDo(t, o, "SAVE")
	again := peer.LimitKV(t, "--dir", dir).Dial(t)
	if after := mustDo(t, again, "DEBUG DIGEST").Text; after != before || repairsOf(t, again) != 0 {
		t.Errorf("saved and loaded it is %s, not %s, and %d are put right", after, before, repairsOf(t, again))
	}
}

// told is what a subcommand of limitkv that succeeds tells.
func told(t *testing.T, args ...string) string {
	t.Helper()
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(bin, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v, %s", args, err, out)
	}
	return string(out)
}

// TestShapesRefused: a file with a value that is refused ends the start.
func TestShapesRefused(t *testing.T) {
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, s := range allShapes() {
		if s.outcome != refused && s.outcome != deadly {
			continue
		}
		n++
		server, err := peer.Start("limitkv", bin, "--dir", fileOf(t, map[string]shape{"k": s}), "--save", "")
		if err == nil {
			server.Stop()
			t.Errorf("%s is loaded", s.name)
		} else if !strings.Contains(err.Error(), "Fatal error loading the DB") || strings.Contains(err.Error(), "panic") {
			t.Errorf("%s: %v", s.name, err)
		}
	}
	if n < 10 {
		t.Errorf("only %d shapes are refused", n)
	}
}
