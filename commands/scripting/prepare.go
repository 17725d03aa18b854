package scripting

// Long sources. Compiling one takes milliseconds, or seconds: a client may send as much as the query buffer allows. So a
// separate goroutine compiles it, before its command begins and takes locks. Only the connection that sent it waits. Then the
// command begins again and finds the result in the session, even if the cache has dropped it.
//
// Only a few such goroutines run at a time: an event loop that wakes up has to wait until each of them has had its turn.

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"github.com/limitkv/limitkv/luavm"
	"github.com/limitkv/limitkv/server/command"
)

// longSource is the size in bytes from which a source is long: compiling it takes a millisecond.
const longSource = 64 << 10

// compilers has an element for each goroutine that compiles: at most half as many as there are processors.
var compilers = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))

// prepared is a compilation that a session waits for, or has waited for. The goroutine that compiles sets the result before
// done.
type prepared struct {
	body    []byte
	session int64
	done    atomic.Bool

	script  *script
	err     error
	library *luavm.Library
}

type preparedKey struct{}

// prepareScript compiles a long script that is new, and stores the script or the error in the request. It reports whether the
// session has to wait.
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

// prepareLibrary is prepareScript for a library. It leaves sources that are no library to the command.
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

// parse parses the code of a library, or returns the library that prepareLibrary compiled.
func (w *worker) parse(code []byte) (*luavm.Library, error) {
	if lib := w.library; lib != nil && lib.Code == string(code) {
		w.library = nil
		return lib, nil
	}
	return luavm.ParseLibrary(code)
}

// prepare begins to compile, or returns the result. The result is empty if compiling panicked: the command then panics too,
// and its client gets the error.
func (f *family) prepare(c *command.Ctx, body []byte, compile func(p *prepared)) *prepared {
	p, _ := c.Session.Slot(preparedKey{}, nil).(*prepared)
	if p != nil && bytes.Equal(p.body, body) {
		if !p.done.Load() { // the connection resumed for another reason
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

// aside compiles, once few enough others do.
func (f *family) aside(p *prepared, compile func(p *prepared)) {
	compilers <- struct{}{}
	defer func() {
		<-compilers
		if r := recover(); r != nil {
			f.s.Logf('w', "panic while compiling: %v\n%s", r, debug.Stack())
		}
		p.done.Store(true)
	}()
	if f.s.Clients.Get(p.session) != nil { // otherwise nobody waits for it any more
		compile(p)
	}
}
