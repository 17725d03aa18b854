package files

// What stands in a file beside values: deadlines, facts, slots, what belongs to modules.

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

func TestEntriesLoaded(t *testing.T) {
	redis := peer.Tool(t, "redis-server", required)
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	seconds := func(at uint32) string { return "\xfd" + string(binary.LittleEndian.AppendUint32(nil, at)) }
	const a = "\x00\x01a\x01x"
	const module = "\x81\x14\x5c\x6e\x5c\x6e\x5c\x6e\x01"
	for name, x := range map[string]struct {
		head, body string
		loads      bool
	}{
		"nothing":                 {"REDIS0012", a, true},
		"seconds":                 {"REDIS0012", seconds(4102444800) + a, true},
		"seconds that are signed": {"REDIS0012", seconds(2000000000) + a, true},
		"seconds that are over":   {"REDIS0003", seconds(1) + a, true},
		"milliseconds":            {"REDIS0009", "\xfc" + millis(4102444800123) + a, true},
		"milliseconds, over":      {"REDIS0009", "\xfc" + millis(1) + a, true},
		"two deadlines":           {"REDIS0009", seconds(2000000000) + "\xfc" + millis(4102444800123) + a, true},
		"use":                     {"REDIS0009", "\xf9\x07" + a + "\xf8\x05\x00\x01b\x01y", true},
		"unknown facts":           {"REDIS0012", "\xfa" + texts("nobody's", "fact") + a + "\xfa" + texts("", "") + "\xfa" + texts("ctime", "x"), true},
		"slots":                   {"REDIS0012", "\xf4\x01\x02\x03" + a, true},
		"sizes that are wrong":    {"REDIS0012", "\xfb\x40\xff\x40\xff" + a, true},
		"a database too many":     {"REDIS0012", "\xfe\x40\xff" + a, false},
		"a key twice":             {"REDIS0012", a + a, false},
		"functions before 7.0":    {"REDIS0010", "\xf6\x01m" + a, false},
		"data of a module":        {"REDIS0012", "\xf7" + module + "\x02\x01" + "\x00" + a, false},
		"a module's, of no time":  {"REDIS0012", "\xf7" + module + "\x01\x01" + "\x00" + a, false},
		"a module's value":        {"REDIS0012", "\x07\x01m" + module + "\x00" + a, false},
		"an old module's value":   {"REDIS0012", "\x06\x01m" + module + "\x00" + a, false},
		"an unknown type":         {"REDIS0012", "\x5b\x01m\x01" + a, false},
		"cut off":                 {"REDIS0012", a + "\x00\x01b\x05y", false},
	} {
		t.Run(name, func(t *testing.T) {
			file := x.head + "\xfe\x00" + x.body + "\xff\x00\x00\x00\x00\x00\x00\x00\x00"
			var got [2]string
			for i, bin := range []string{redis, bin} {
				dir := t.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "dump.rdb"), []byte(file), 0o644); err != nil {
					t.Fatal(err)
				}
				s, err := peer.Start(filepath.Base(bin), bin, "--dir", dir, "--save", "")
				if err != nil {
					if got[i] = "refused"; strings.Contains(err.Error(), "panic") {
						t.Error(err)
					}
					continue
				}
				c := s.Dial(t)
				for _, line := range []string{"DBSIZE", "GET a", "PEXPIRETIME a", "GET b"} {
					got[i] += oneLine(mustDo(t, c, line)) + " "
				}
				s.Stop()
			}
			if got[0] != got[1] || (got[1] != "refused") != x.loads {
				t.Errorf("here %s, in Redis %s", got[1], got[0])
			}
		})
	}
}
