package files

// Logs that other servers wrote, or people: what fails in them is passed over, as Redis does. Our own have marks, and in them it
// is a fault.

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/conformance/recorded"
	"github.com/limitkv/limitkv/engine/journal"
)

// logOf is a log of commands, a line each.
func logOf(t *testing.T, lines string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSpace(lines) + "\n") {
		args, err := recorded.Split(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("*" + strconv.Itoa(len(args)) + "\r\n")
		for _, a := range args {
			b.WriteString("$" + strconv.Itoa(len(a)) + "\r\n" + a + "\r\n")
		}
	}
	return b.String()
}

// inLog puts a log of other servers into a directory.
func inLog(t *testing.T, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	log := filepath.Join(dir, "appendonlydir")
	if err := os.Mkdir(log, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"appendonly.aof.manifest": "file appendonly.aof.1.incr.aof seq 1 type i\n", "appendonly.aof.1.incr.aof": text} {
		if err := os.WriteFile(filepath.Join(log, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// holds are some keys of a server, and how many there are.
func holds(t *testing.T, c *peer.Conn) string {
	t.Helper()
	var got []string
	for _, line := range []string{"DBSIZE", "GET a", "GET b", "LRANGE l 0 -1", "FUNCTION LIST", "SELECT 5", "DBSIZE"} {
		got = append(got, oneLine(mustDo(t, c, line)))
	}
	return strings.Join(got, " ")
}

func mustDo(t *testing.T, c *peer.Conn, line string) peer.Value {
	t.Helper()
	return c.Must(t, strings.Fields(line)...)
}

func TestForeignLog(t *testing.T) {
	for name, o := range map[string]struct {
		log    string
		errors int // that are counted
		told   string
		alone  string // what is there, where Redis ends or hangs
	}{
		"a script that fails":   {"SET a 1\nEVAL \"redis.call('SET', 'b', 2) redis.call('LPUSH', 'b', 1)\" 0\nRPUSH l x", 1, "WRONGTYPE", `:3 "1" "2" ["x"] [] +OK :0`},
		"a wrong type":          {"SET a 1\nLPUSH a x\nSET b 2", 1, "WRONGTYPE", ""},
		"in a transaction":      {"MULTI\nSET a 1\nLPUSH a x\nINCR a\nEXEC\nSET b 2", 1, "WRONGTYPE", ""},
		"an unknown script":     {"SET a 1\nEVALSHA 0123456789012345678901234567890123456789 0\nSET b 2", 1, "NOSCRIPT", ""},
		"a script of the log":   {"SCRIPT LOAD \"return redis.call('SET', 'a', 7)\"\nEVALSHA 8d842250bdcd825356fcaf2e17ab5803a5398d17 0\nSET b 2", 0, "", ""},
		"functions before 7.0":  {"SET a 1\nFUNCTION RESTORE \"\\xf6\\x00\\x00\\x00\"\nSET b 2", 1, "payload", ""},
		"a database too many":   {"SELECT 5\nSET a 1\nSELECT 99\nSET b 2\nSELECT 0\nSET a 3", 1, "DB index is out of range", ""},
		"no number of database": {"SET a 1\nSELECT x\nSET b 2", 1, "not an integer", ""},
		"what reads":            {"SET a 1\nGET a\nKEYS *\nPING\nSET b 2", 0, "", ""},
		"what waits":            {"SET a 1\nBLPOP l 0\nRPUSH l x\nSET b 2", 0, "", ""},
		"what has been served":  {"RPUSH l x y\nBLPOP l 0\nSET b 2", 0, "", ""},
		"the server's own":      {"SET a 1\nCONFIG SET maxmemory 1mb\nSUBSCRIBE c\nCLIENT PAUSE 100000\nSET b 2", 0, "is passed over", `:2 "1" "2" [] [] +OK :0`},
		"a publication":         {"SET a 1\nPUBLISH c x\nSET b 2", 0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"--dir", inLog(t, logOf(t, o.log)), "--appendonly", "yes", "--save", ""}
			s := peer.LimitKV(t, args...)
			c := s.Dial(t)
			got := holds(t, c)
			if n := peer.Field(mustDo(t, c, "INFO stats").Text, "unexpected_error_replies"); n != strconv.Itoa(o.errors) {
				t.Errorf("%s errors are counted, want %d", n, o.errors)
			}
			if out := s.Output(); o.errors > 0 && !strings.Contains(out, "== CRITICAL ==") || !strings.Contains(out, o.told) {
				t.Errorf("the log does not say %q: %s", o.told, out)
			}
			if o.alone != "" {
				if got != o.alone {
					t.Errorf("there is %s", got)
				}
				return
			}
			r := peer.Redis(t, required, "--dir", inLog(t, logOf(t, o.log)), "--appendonly", "yes", "--save", "")
			if want := holds(t, r.Dial(t)); got != want {
				t.Errorf("there is %s, in Redis %s", got, want)
			}
		})
	}
}

// TestForeignShutdown: Redis ends at once, again and again; here it does not.
func TestForeignShutdown(t *testing.T) {
	c := peer.LimitKV(t, "--dir", inLog(t, logOf(t, "SET a 1\nSHUTDOWN NOSAVE\nDEBUG SEGFAULT\nREPLICAOF 127.0.0.1 1\nSET b 2")), "--appendonly", "yes", "--save", "").Dial(t)
	if got := holds(t, c) + " " + peer.Field(mustDo(t, c, "INFO replication").Text, "role"); got != `:2 "1" "2" [] [] +OK :0 master` {
		t.Error(got)
	}
}

// TestMarkedLogIsStrict: an error in a group with a mark ends the start.
func TestMarkedLogIsStrict(t *testing.T) {
	for name, lines := range map[string][]string{
		"a wrong type":        {"0: SET a 1", "0: LPUSH a x"},
		"a database too many": {"0: SET a 1", "99: SET a 1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := open(t, dir, journal.WriterOptions{Policy: journal.Always, Checksums: true})
			o.add(lines...)
			o.close()
			bin, err := peer.Build()
			if err != nil {
				t.Fatal(err)
			}
			s, err := peer.Start("limitkv", bin, "--dir", dir, "--appendonly", "yes", "--save", "")
			if err == nil {
				s.Stop()
				t.Fatal("it starts")
			}
			if !strings.Contains(err.Error(), "Fatal error loading the append only files") {
				t.Error(err)
			}
		})
	}
}
