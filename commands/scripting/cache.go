package scripting

// The cache of scripts. A script is compiled once; every worker then finds it
// in a map of its own, without a lock. FLUSH and eviction change the
// generation, at which workers forget what they have.

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/luavm"
	"github.com/limitkv/limitkv/luavm/analysis"
)

// evalScriptsMax is how many scripts are kept that came by EVAL alone, as in
// Redis; those of SCRIPT LOAD stay until SCRIPT FLUSH.
const evalScriptsMax = 500

// script is a cached script with what is known of its runs.
type script struct {
	*luavm.Script
	loaded bool // by SCRIPT LOAD: not evicted

	used    atomic.Int64 // order of the last use, for eviction
	runs    atomic.Int64
	micros  atomic.Int64
	longest atomic.Int64
}

func (s *script) ran(micros int64) {
	s.runs.Add(1)
	s.micros.Add(micros)
	for {
		longest := s.longest.Load()
		if micros <= longest || s.longest.CompareAndSwap(longest, micros) {
			return
		}
	}
}

type cache struct {
	mu         sync.Mutex
	bySHA      map[string]*script
	generation atomic.Int64
	flushes    atomic.Int64
	clock      atomic.Int64 // counts uses
	evicted    atomic.Int64
	keys       analysis.KeyFinder
}

// local is a worker's view of the cache.
type local struct {
	generation int64
	bySHA      map[string]*script
	byBody     map[string]*script
}

// localMax bounds a worker's maps.
const localMax = 2 * evalScriptsMax

func (l *local) renew(generation int64) {
	if l.bySHA == nil || l.generation != generation || len(l.byBody) > localMax {
		l.bySHA, l.byBody = make(map[string]*script), make(map[string]*script)
		l.generation = generation
	}
}

// find returns the script with a SHA-1 in lower or upper case, nil if there is
// none.
func (c *cache) find(l *local, sha []byte) *script {
	l.renew(c.generation.Load())
	if s := l.bySHA[string(sha)]; s != nil {
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
	if s := l.byBody[string(body)]; s != nil && (s.loaded || !load) {
		return s, nil
	}
	sha := luavm.SHA1Hex(body)
	c.mu.Lock()
	s := c.bySHA[sha]
	if s != nil && load && !s.loaded {
		s.loaded = true
	}
	c.mu.Unlock()
	if s == nil {
		compiled, err := luavm.Compile(body)
		if err != nil {
			return nil, err
		}
		compiled.Analyse(c.keys)
		s = c.add(&script{Script: compiled, loaded: load})
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
	s.used.Store(c.clock.Add(1))
	if !s.loaded {
		n := 0
		var oldest *script
		for _, x := range c.bySHA {
			if x.loaded {
				continue
			}
			n++
			if oldest == nil || x.used.Load() < oldest.used.Load() {
				oldest = x
			}
		}
		if n >= evalScriptsMax {
			delete(c.bySHA, oldest.SHA)
			c.evicted.Add(1)
			c.generation.Add(1)
		}
	}
	c.bySHA[s.SHA] = s
	return s
}

func (c *cache) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bySHA = make(map[string]*script)
	c.generation.Add(1)
	c.flushes.Add(1)
}

func (c *cache) all() []*script {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]*script, 0, len(c.bySHA))
	for _, s := range c.bySHA {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *script) int { return int(b.used.Load() - a.used.Load()) })
	return list
}

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
