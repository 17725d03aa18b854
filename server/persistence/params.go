package persistence

// The parameters of redis.conf about files.

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/server/params"
)

type settings struct {
	appendOnly                      atomic.Bool
	sync, diskError                 *atomic.Pointer[string]
	dirname, filename, dbfilename   *atomic.Pointer[string]
	preamble, truncated             *atomic.Bool
	stopWrites, suspend, timestamps *atomic.Bool
	keepHistory                     *atomic.Bool
	corruptTailMax                  *atomic.Int64
	growPercent, growMin            *atomic.Int64
	points                          atomic.Pointer[[]point]
	// loadDelay and saveDelay make each key slower by so many microseconds, for tests.
	loadDelay, saveDelay *atomic.Int64
}

// point is a save point: a snapshot is made after so many seconds if there were so many changes.
type point struct{ seconds, changes int64 }

func (f *Files) declare() {
	c, p := f.s.Config, &f.p
	c.Add(&params.Param{
		Name: "appendonly", Help: "every change is logged in the append-only file",
		Get: func() string {
			if p.appendOnly.Load() {
				return "yes"
			}
			return "no"
		},
		Set: f.setAppendOnly,
	})
	p.sync = c.Enum("appendfsync", "everysec", []string{"everysec", "always", "no"}, "when the append-only file is made safe")
	p.diskError = c.Enum("disk-error-policy", "refuse", []string{"refuse", "exit"}, "what becomes of a server whose append-only file cannot be written: it refuses writes until it can, or, with appendfsync always, ends as Redis does")
	p.filename = c.Text("appendfilename", "appendonly.aof", "what the names of the append-only files begin with")
	p.dirname = c.Text("appenddirname", "appendonlydir", "where the append-only files are, in dir")
	p.dbfilename = c.Text("dbfilename", "dump.rdb", "the snapshot's name, in dir")
	for _, name := range []string{"appendfilename", "appenddirname"} {
		c.Find(name).Immutable = true
	}
	c.Find("dbfilename").Protected = true
	for _, name := range []string{"appendfilename", "appenddirname", "dbfilename"} {
		fileName(c.Find(name))
	}
	c.Bool("rdbchecksum", true, "snapshots end with a checksum, which is verified")
	c.Find("rdbchecksum").Immutable = true
	p.preamble = c.Bool("aof-use-rdb-preamble", true, "a rewritten append-only file begins with a snapshot")
	p.truncated = c.Bool("aof-load-truncated", true, "an append-only file whose end is torn is cut and loaded")
	p.corruptTailMax = c.Memory("aof-load-corrupt-tail-max-size", 0, 0, math.MaxInt64, "an end of the append-only file that is damaged is cut, too, if it is at most so long")
	p.stopWrites = c.Bool("stop-writes-on-bgsave-error", true, "writes are refused while snapshots fail")
	p.suspend = c.Bool("no-appendfsync-on-rewrite", false, "nothing is synced while a snapshot or a rewrite runs")
	p.timestamps = c.Bool("aof-timestamp-enabled", false, "the append-only file tells times")
	p.keepHistory = c.Bool("aof-disable-auto-gc", false, "")
	c.Find("aof-disable-auto-gc").Hidden = true
	c.OnChange(f.applyHistory, "aof-disable-auto-gc")
	p.growPercent = c.Int("auto-aof-rewrite-percentage", 100, 0, math.MaxInt32, "the append-only file is rewritten when it has grown by so much")
	p.growMin = c.Memory("auto-aof-rewrite-min-size", 64<<20, 0, math.MaxInt64, "and is at least so large")
	points := []point{{3600, 1}, {300, 100}, {60, 10000}}
	if f.s.TestMode {
		points = []point{} // tests leave nothing behind
	}
	p.points.Store(&points)
	c.Add(&params.Param{
		Name: "save", Adds: true, Words: true, Help: "pairs of seconds and changes after which a snapshot is made; empty: never",
		Get: func() string {
			var words []string
			for _, x := range *p.points.Load() {
				words = append(words, fmt.Sprintf("%d %d", x.seconds, x.changes))
			}
			return strings.Join(words, " ")
		},
		Set: func(value string) error {
			words := strings.Fields(value)
			if f.s.Running.Load() && value != "" {
				words = strings.Split(value, " ") // as Redis's CONFIG SET does: two spaces have an empty word between them
			}
			points, err := parsePoints(words)
			if err == nil {
				p.points.Store(&points)
			}
			return err
		},
	})
	p.loadDelay = hidden(c, "key-load-delay")
	p.saveDelay = hidden(c, "rdb-key-save-delay")
	c.OnChange(f.applyParams, "appendfsync", "aof-timestamp-enabled")
	c.OnChange(f.refuse, "save", "stop-writes-on-bgsave-error")
	c.OnChange(f.stays, "dir")
}

// stays warns that the append-only file stays in its directory when dir changes. Snapshots go to the new one.
func (f *Files) stays() {
	files := f.log()
	if dir, err := os.Getwd(); err == nil && files != nil && files.Dir != dir {
		f.s.Logf('w', "dir has changed, and the append only file stays in %s: turn appendonly off and on again to have it here", files.Dir)
	}
}

// hidden declares a parameter for tests.
func hidden(c *params.Config, name string) *atomic.Int64 {
	v := c.Int(name, 0, math.MinInt32, math.MaxInt32, "")
	c.Find(name).Hidden = true
	return v
}

// slower waits for the extra time of so many keys, or until nobody wants them. A negative delay is one microsecond for so many
// keys. The delay may change meanwhile.
func (f *Files) slower(delay *atomic.Int64, keys int, unwanted func() error) {
	began := engine.Monotonic()
	for unwanted == nil || unwanted() == nil {
		micros := delay.Load()
		if micros < 0 {
			micros = int64(keys) / -micros
		} else {
			micros *= int64(keys)
		}
		left := time.Duration(micros-(engine.Monotonic()-began)) * time.Microsecond
		if micros == 0 || left <= 0 {
			return
		}
		select {
		case <-f.stop:
			return
		case <-time.After(min(left, transferPoll)):
		}
	}
}

// fileName forbids a parameter to be a path.
func fileName(p *params.Param) {
	set := p.Set
	p.Set = func(value string) error {
		switch {
		case strings.Contains(value, "/"):
			if p.Name == "appenddirname" {
				return errors.New("appenddirname can't be a path, just a dirname")
			}
			return errors.New(p.Name + " can't be a path, just a filename")
		case value == "" && p.Immutable: // Redis accepts an empty dbfilename, and cannot save then
			return errors.New(p.Name + " can't be empty")
		}
		return set(value)
	}
}

func parsePoints(words []string) ([]point, error) {
	points := []point{}
	wrong := errors.New("Invalid save parameters")
	if len(words)%2 != 0 {
		return nil, wrong
	}
	for i := 0; i < len(words); i += 2 {
		seconds, err1 := pointNumber(words[i])
		changes, err2 := pointNumber(words[i+1])
		if err1 != nil || err2 != nil || seconds < 1 || changes < 0 {
			return nil, wrong
		}
		points = append(points, point{seconds, changes})
	}
	return points, nil
}

// pointNumber parses a number as Redis does there, by C's strtoll: an empty word is 0.
func pointNumber(word string) (int64, error) {
	if word = strings.TrimLeft(word, "\t\n\v\f\r "); word == "" {
		return 0, nil
	}
	return strconv.ParseInt(word, 10, 64)
}

func (p *settings) policy() journal.Policy {
	switch *p.sync.Load() {
	case "always":
		return journal.Always
	case "no":
		return journal.Never
	}
	return journal.EverySecond
}

// applyHistory keeps the files that rewrites replace, or removes them.
func (f *Files) applyHistory() {
	if files := f.log(); files != nil {
		files.KeepHistory(f.p.keepHistory.Load())
	}
}

// SlowLog delays every write to the append-only file (DEBUG AOF-FLUSH-SLEEP).
func (f *Files) SlowLog(d time.Duration) {
	f.delay.Store(int64(d))
	if files := f.log(); files != nil {
		files.Delay(d)
	}
}

// applyParams passes changed parameters to the append-only file.
func (f *Files) applyParams() {
	if files := f.log(); files != nil {
		files.SetPolicy(f.p.policy())
		files.SetTimestamps(f.p.timestamps.Load())
	}
}
