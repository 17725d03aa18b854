package scripting

// The cache of scripts. A script is compiled once; every worker then finds it
// in a map of its own, without a lock. FLUSH and eviction change the
// generation, at which workers forget what they have.

import (
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/luavm"
	"github.com/limitkv/limitkv/luavm/analysis"
)

// evalScriptsMax is how many scripts are kept that came by EVAL alone, as in
// Redis; those of SCRIPT LOAD stay until SCRIPT FLUSH.
const evalScriptsMax = 500

// script is a cached script with what is known of its runs.
type script struct {
	*luavm.Script
	loaded atomic.Bool // by SCRIPT LOAD: not evicted
	runs   [runSlots]runs
}

// runs is a part of what is known of a script's runs. Workers write to
// different ones, as far as there are enough: lines that all cores write to cost
// a run of a small script a tenth of its time.
type runs struct {
	runs    atomic.Int64
	micros  atomic.Int64
	longest atomic.Int64
	used    atomic.Int64 // when it began last, for eviction
	_       [32]byte
}

const runSlots = 8

// ran counts a run that took so many microseconds.
func (s *script) ran(slot int, began, micros int64) {
	r := &s.runs[slot]
	r.runs.Add(1)
	r.micros.Add(micros)
	r.used.Store(began)
	for {
		longest := r.longest.Load()
		if micros <= longest || r.longest.CompareAndSwap(longest, micros) {
			return
		}
	}
}

// total is what is known of all runs.
func (s *script) total() (runs, micros, longest, used int64) {
	for i := range s.runs {
		r := &s.runs[i]
		runs += r.runs.Load()
		micros += r.micros.Load()
		longest = max(longest, r.longest.Load())
		used = max(used, r.used.Load())
	}
	return runs, micros, longest, used
}

func (s *script) used() int64 {
	_, _, _, used := s.total()
	return used
}

type cache struct {
	mu         sync.Mutex
	bySHA      map[string]*script
	generation atomic.Int64
	flushes    atomic.Int64
	evicted    atomic.Int64
	bytes      atomic.Int64 // of the scripts' texts
	keys       analysis.KeyFinder
}

// local is a worker's view of the cache.
type local struct {
	generation int64
	bySHA      map[string]*script
	byBody     map[string]*script
	last       *script // what was asked for last, which is often asked for again
}

// localMax bounds a worker's maps.
const localMax = 2 * evalScriptsMax

func (l *local) renew(generation int64) {
	if l.bySHA == nil || l.generation != generation || len(l.byBody) > localMax {
		l.bySHA, l.byBody = make(map[string]*script), make(map[string]*script)
		l.generation, l.last = generation, nil
	}
}

// find returns the script with a SHA-1 in lower or upper case, nil if there is
// none.
func (c *cache) find(l *local, sha []byte) *script {
	l.renew(c.generation.Load())
	if s := l.last; s != nil && s.SHA == string(sha) {
		return s
	}
	if s := l.bySHA[string(sha)]; s != nil {
		l.last = s
		return s
	}
	name := lower(sha)
	c.mu.Lock()
	s := c.bySHA[name]
	c.mu.Unlock()
	if s != nil {
		l.bySHA[string(sha)] = s
	}
	return s
}

// compile returns the script with a body, compiling it if it is new.
func (c *cache) compile(l *local, body []byte, load bool) (*script, error) {
	l.renew(c.generation.Load())
	if s := l.last; s != nil && !load && s.Body == string(body) {
		return s, nil
	}
	if s := l.byBody[string(body)]; s != nil && (s.loaded.Load() || !load) {
		l.last = s
		return s, nil
	}
	sha := luavm.SHA1Hex(body)
	c.mu.Lock()
	s := c.bySHA[sha]
	if s != nil && load {
		s.loaded.Store(true)
	}
	c.mu.Unlock()
	if s == nil {
		compiled, err := luavm.Compile(body)
		if err != nil {
			return nil, err
		}
		compiled.Analyse(c.keys)
		s = &script{Script: compiled}
		s.loaded.Store(load)
		s = c.add(s)
	}
	l.byBody[s.Body] = s
	l.bySHA[s.SHA] = s
	return s, nil
}

// add enters a script and evicts the least recently used one if there are too
// many that nobody loaded.
func (c *cache) add(s *script) *script {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.bySHA[s.SHA]; old != nil {
		return old
	}
	s.runs[0].used.Store(engine.Monotonic())
	if !s.loaded.Load() {
		n := 0
		var oldest *script
		for _, x := range c.bySHA {
			if x.loaded.Load() {
				continue
			}
			n++
			if oldest == nil || x.used() < oldest.used() {
				oldest = x
			}
		}
		if n >= evalScriptsMax {
			delete(c.bySHA, oldest.SHA)
			c.bytes.Add(-int64(len(oldest.Body)))
			c.evicted.Add(1)
			c.generation.Add(1)
		}
	}
	c.bySHA[s.SHA] = s
	c.bytes.Add(int64(len(s.Body)))
	return s
}

func (c *cache) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bySHA = make(map[string]*script)
	c.bytes.Store(0)
	c.generation.Add(1)
	c.flushes.Add(1)
}

func (c *cache) len() int { c.mu.Lock(); defer c.mu.Unlock(); return len(c.bySHA) }

func lower(b []byte) string {
	out := make([]byte, len(b))
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		out[i] = c
	}
	return string(out)
}
