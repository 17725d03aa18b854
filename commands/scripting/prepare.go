package scripting

// Long sources. To compile one takes milliseconds, or seconds: a client may send as much as the query buffer holds. So it
// is compiled on a goroutine of its own, before its command begins and takes locks. Only the connection that sent it
// waits. Then the command begins anew, and what was compiled is found in the session, whatever has become of the cache.
//
// Few such goroutines run at a time: an event loop that wakes would have to wait until each of them has had its turn.

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"github.com/limitkv/limitkv/luavm"
	"github.com/limitkv/limitkv/server/command"
)

// longSource is from how many bytes on a source is long: to compile that takes a millisecond.
const longSource = 64 << 10

// compilers holds one for each goroutine of the process that compiles: of the processors, half may.
var compilers = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))

// prepared is what a session waits for, or has waited for. The goroutine that compiles sets the result before done.
type prepared struct {
	body    []byte
	session int64
	done    atomic.Bool

	script  *script
	err     error
	library *luavm.Library
}

type preparedKey struct{}

// prepareScript compiles a long script that is new, and leaves it in the request, or why it does not compile. It reports
// whether the session has to wait.
func (f *family) prepareScript(c *command.Ctx, body []byte) (wait bool) {
	if len(body) < longSource || c.Session.Conn == nil {
		return false
	}
	l := &f.worker(c).scripts
	l.renew(f.cache.generation.Load())
	if l.knows(body) != nil {
		return false
	}
	p := f.prepare(c, body, func(p *prepared) { p.script, p.err = f.cache.enter(p.body) })
	switch {
	case p == nil:
		return true
	case p.script != nil:
		l.last = f.cache.add(p.script) // it may have been evicted
		c.Prepared = l.last
	case p.err != nil:
		c.Prepared = p.err
	}
	return false
}

// prepareLibrary is prepareScript for a library. Sources that are none are left to the command.
func (f *family) prepareLibrary(c *command.Ctx, code []byte) (wait bool) {
	w := f.worker(c)
	if len(code) < longSource || c.Session.Conn == nil || w.library != nil && w.library.Code == string(code) {
		return false
	}
	p := f.prepare(c, code, func(p *prepared) {
		if lib, err := luavm.ParseLibrary(p.body); err == nil {
			lib.Compile()
			p.library = lib
		}
	})
	if p == nil {
		return true
	}
	w.library = p.library
	return false
}

// parse returns a library with a code that is to be tried: the one that was prepared, if there is one.
func (w *worker) parse(code []byte) (*luavm.Library, error) {
	if lib := w.library; lib != nil && lib.Code == string(code) {
		w.library = nil
		return lib, nil
	}
	return luavm.ParseLibrary(code)
}

// prepare begins to compile, or returns what came of it: nothing if it panicked, so that the command meets the panic
// itself, where its client is told.
func (f *family) prepare(c *command.Ctx, body []byte, compile func(p *prepared)) *prepared {
	p, _ := c.Session.Slot(preparedKey{}, nil).(*prepared)
	if p != nil && bytes.Equal(p.body, body) {
		if !p.done.Load() { // the connection goes on for another reason
			return nil
		}
		c.Session.Keep(preparedKey{}, nil)
		return p
	}
	p = &prepared{body: bytes.Clone(body), session: c.Session.ID}
	c.Session.Keep(preparedKey{}, p)
	conn := c.Session.Conn
	go func() {
		f.aside(p, compile)
		conn.Post(conn.Resume)
	}()
	return nil
}

// aside compiles, when there is room for one more that does.
func (f *family) aside(p *prepared, compile func(p *prepared)) {
	compilers <- struct{}{}
	defer func() {
		<-compilers
		if r := recover(); r != nil {
			f.s.Logf('w', "panic while compiling: %v\n%s", r, debug.Stack())
		}
		p.done.Store(true)
	}()
	if f.s.Clients.Get(p.session) != nil { // or nobody waits for it any more
		compile(p)
	}
}
