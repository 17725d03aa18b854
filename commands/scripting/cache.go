package scripting

// The cache of scripts. A script is compiled once; every worker then finds it in its own map, without a lock. A script that
// leaves the cache is marked, so that workers no longer find it. A new generation empties the workers' maps.
//
// Scripts with values pasted into them are common: each is a new script and runs once. So a script is analysed only when it
// is about to run for the second time, and counts as unproven until then. Adding one does not scan the cache.

import (
	"container/heap"
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/luavm"
	"github.com/limitkv/limitkv/luavm/analysis"
)

// evalScriptsMax is how many scripts the cache keeps that came only by EVAL, as in Redis. Scripts of SCRIPT LOAD stay until
// SCRIPT FLUSH.
const evalScriptsMax = 500

// script is a cached script with the statistics of its runs.
type script struct {
	*luavm.Script
	loaded  atomic.Bool // by SCRIPT LOAD: not evicted
	gone    atomic.Bool // no longer in the cache
	planned atomic.Bool // has been planned before
	verdict atomic.Pointer[analysis.Verdict]
	runs    [runSlots]runs

	// For eviction, guarded by the cache's mutex.
	asked int64 // when it ran last, as far as is known
	at    int   // its place in the heap
	bytes int64 // what it adds to cache.bytes
}

// proven returns the verdict of the analysis.
func (s *script) proven(keys analysis.KeyFinder) *analysis.Verdict {
	v := s.verdict.Load()
	if v == nil {
		found := s.Analyse(keys)
		v = &found
		s.verdict.Store(v)
	}
	return v
}

// unproven is the verdict on a script that has not been analysed.
var unproven analysis.Verdict

// plan returns the verdict for a run. A script that has not run before is not worth an analysis.
func (s *script) plan(keys analysis.KeyFinder) *analysis.Verdict {
	if v := s.verdict.Load(); v != nil {
		return v
	}
	if !s.loaded.Load() && !s.planned.Swap(true) {
		return &unproven
	}
	return s.proven(keys)
}

// runs is a part of the statistics of a script's runs. Workers write to different parts, as far as there are enough: cache
// lines that all cores write to cost a small script a tenth of its time.
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

// total is the statistics of all runs.
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

// byUse is a heap of the scripts that came only by EVAL, by their last known use.
type byUse []*script

func (h byUse) Len() int           { return len(h) }
func (h byUse) Less(i, j int) bool { return h[i].asked < h[j].asked }
func (h byUse) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}
func (h *byUse) Push(x any) {
	s := x.(*script)
	s.at = len(*h)
	*h = append(*h, s)
}
func (h *byUse) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return s
}

type cache struct {
	mu         sync.Mutex
	bySHA      map[string]*script
	evictable  byUse
	generation atomic.Int64
	flushes    atomic.Int64
	evicted    atomic.Int64
	bytes      atomic.Int64 // of the scripts' texts and compiled forms
}

// local is a worker's view of the cache. Maps that are full become the former ones. A script that is found only in the former
// maps moves to the new ones, so scripts in use stay and others go.
type local struct {
	generation  int64
	now, former scripts
	last        *script // the script that was asked for last, and is often asked for again
}

type scripts struct{ bySHA, byBody map[string]*script }

// localMax bounds a worker's maps.
const localMax = evalScriptsMax

func (l *local) renew(generation int64) {
	switch {
	case l.generation != generation || l.now.bySHA == nil:
		*l = local{generation: generation}
	case len(l.now.byBody)+len(l.now.bySHA) > localMax:
		l.former = l.now
	default:
		return
	}
	l.now = scripts{make(map[string]*script), make(map[string]*script)}
}

// find returns the script with a SHA-1 in lower or upper case, nil if there is
// none.
func (c *cache) find(l *local, sha []byte) *script {
	l.renew(c.generation.Load())
	if s := l.last; s != nil && s.SHA == string(sha) && !s.gone.Load() {
		return s
	}
	s := l.now.bySHA[string(sha)]
	if s == nil || s.gone.Load() {
		if s = l.former.bySHA[string(sha)]; s == nil || s.gone.Load() {
			c.mu.Lock()
			s = c.bySHA[lower(sha)]
			c.mu.Unlock()
		}
		if s != nil {
			l.now.bySHA[string(sha)] = s
		} else {
			delete(l.now.bySHA, string(sha))
		}
	}
	l.last = s
	return s
}

// compile returns the script with a body, compiling it if it is new.
func (c *cache) compile(l *local, body []byte) (*script, error) {
	l.renew(c.generation.Load())
	s := l.knows(body)
	if s == nil {
		var err error
		if s, err = c.enter(body); err != nil {
			return nil, err
		}
	}
	if l.last != s {
		if s.planned.Load() { // a script that runs once is not asked for again
			l.now.byBody[s.Body] = s
		}
		l.last = s
	}
	return s, nil
}

// knows returns the worker's script with a body, nil if the cache must be asked.
func (l *local) knows(body []byte) *script {
	if s := l.last; s != nil && s.Body == string(body) && !s.gone.Load() {
		return s
	}
	if s := l.now.byBody[string(body)]; s != nil && !s.gone.Load() {
		return s
	}
	if s := l.former.byBody[string(body)]; s != nil && !s.gone.Load() {
		return s
	}
	return nil
}

// enter returns the script with a body that the worker does not know.
func (c *cache) enter(body []byte) (*script, error) {
	sha := luavm.SHA1Hex(body)
	c.mu.Lock()
	s := c.bySHA[sha]
	c.mu.Unlock()
	if s != nil {
		return s, nil
	}
	compiled, err := luavm.Compile(body)
	if err != nil {
		return nil, err
	}
	return c.add(&script{Script: compiled}), nil
}

// add enters a compiled script, and evicts the least recently used one if too many came only by EVAL. If the script is there
// already, add returns that one.
func (c *cache) add(s *script) *script {
	now := engine.Monotonic()
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.bySHA[s.SHA]; old != nil {
		return old
	}
	if len(c.evictable) >= evalScriptsMax {
		c.evict()
	}
	s.asked = now
	heap.Push(&c.evictable, s)
	s.gone.Store(false)
	c.bySHA[s.SHA] = s
	s.bytes = s.Bytes()
	c.bytes.Add(s.bytes)
	return s
}

// load returns the script with a body, and protects it from eviction.
func (c *cache) load(l *local, body []byte) (*script, error) {
	s, err := c.compile(l, body)
	if err != nil {
		return nil, err
	}
	for {
		s = c.add(s) // it may have been evicted
		c.mu.Lock()
		kept := c.bySHA[s.SHA] == s
		if kept && !s.loaded.Swap(true) {
			heap.Remove(&c.evictable, s.at)
		}
		c.mu.Unlock()
		if kept {
			return s, nil
		}
	}
}

// evict removes the least recently used script. First it moves scripts that were used since the heap last looked to their new
// place: each at most once for each use.
func (c *cache) evict() {
	oldest := c.evictable[0]
	for {
		used := oldest.used()
		if used <= oldest.asked {
			break
		}
		oldest.asked = used
		heap.Fix(&c.evictable, 0)
		oldest = c.evictable[0]
	}
	heap.Pop(&c.evictable)
	oldest.gone.Store(true)
	delete(c.bySHA, oldest.SHA)
	c.bytes.Add(-oldest.bytes)
	c.evicted.Add(1)
}

func (c *cache) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.bySHA {
		s.gone.Store(true)
	}
	c.bySHA = make(map[string]*script)
	c.evictable = nil
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
