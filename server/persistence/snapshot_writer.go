package persistence

// Writing a file in the background, from a cut of the engine.

import (
	"errors"
	"io"
	"runtime"
	"sync"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/engine/rdb"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/dumpfile"
)

// snapshotWriter writes a file from a cut. It begins under all locks and writes without them.
type snapshotWriter struct {
	f         *Files
	cut       *engine.Cut
	libraries []string
	now       int64
	at        journal.LSN
	base      bool // the base of an append-only file
	words     bool // written as commands
	format    rdb.Format
	transfer  *Transfer // nil if it is not for replicas
	facts     [][2]string

	killed chan struct{} // closed when nobody wants it any more
	once   sync.Once
	why    error // why killed was closed

	// walked and due belong to the goroutine that walks the keys, so that a client that is about to change a key does not wait
	// for it. due is the time of the next offer of the processor.
	walked gathered
	due    int64

	mu    sync.Mutex
	early gathered // entries that were about to change
	large []large  // values that are written in pieces, not begun yet
	bytes int      // of early and large, which a fork would have copied
	free  []block  // blocks to reuse
	done  int      // keys that were written or are about to be
	total int      // keys in the cut
}

// gathered is encoded and waits to be written.
type gathered struct {
	block block
	full  []block
	keys  int
}

// block is encoded keys: in Redis's dump format, or as commands.
type block struct {
	dump  *rdb.Block
	words *words
}

func (b block) none() bool { return b.words == nil && b.dump == nil }

func (b block) len() int {
	if b.words != nil {
		return len(b.words.text)
	}
	return b.dump.Len()
}

// large is a value that is written in pieces.
type large struct {
	held   *engine.Held
	pieces *rdb.Pieces
}

// blockBytes is the size at which a block is written. Up to blocksFree blocks are reused: new ones would be garbage of twice
// the file's size.
const (
	blockBytes = 256 << 10
	blocksFree = 4
)

// again returns a written block to the free list.
func (p *snapshotWriter) again(b block) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) < blocksFree && b.reset() {
		p.free = append(p.free, b)
	}
}

// reset empties a block. It reports false if a large value has made the block too large to keep.
func (b block) reset() bool {
	if b.words != nil {
		b.words.text, b.words.db = b.words.text[:0], -1
		return cap(b.words.text) <= 4*blockBytes
	}
	b.dump.Reset()
	return b.dump.Cap() <= 4*blockBytes
}

// errReplaced: a test's snapshot replaced the keyspace. errKilled: nobody wants the snapshot any more. errAborted: a client
// has aborted it.
var (
	errReplaced = errors.New("the keyspace was replaced meanwhile")
	errKilled   = errors.New("it was given up")
	errAborted  = errors.New("DEBUG STOP-SAVING ended it")
)

// begin makes a snapshot of this moment. The caller holds all locks.
func (f *Files) begin(c *command.Ctx, base bool) *snapshotWriter {
	p := &snapshotWriter{f: f, libraries: f.s.Functions.Libraries(c.KS), now: c.Now, at: c.KS.Journal.End(), base: base,
		words: base && !f.p.preamble.Load(), format: f.dumps.FileFormat(), killed: make(chan struct{})}
	if !base {
		p.facts = f.facts()
	}
	p.cutOff(c)
	return p
}

// cutOff begins the cut. The caller holds all locks.
func (p *snapshotWriter) cutOff(c *command.Ctx) {
	defer func(db int) { c.DB = db }(c.DB)
	for c.DB = range c.KS.Databases() {
		p.total += c.Count()
	}
	p.cut = c.BeginCut(p.take)
}

// newBlock returns an empty block.
func (p *snapshotWriter) newBlock() block {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reused()
}

// reused is newBlock for callers that hold p.mu.
func (p *snapshotWriter) reused() block {
	if n := len(p.free) - 1; n >= 0 {
		b := p.free[n]
		p.free = p.free[:n]
		return b
	}
	if p.words {
		return block{words: p.f.newWords()}
	}
	return block{dump: rdb.NewBlock(p.format)}
}

// kill aborts the snapshot. Its writer then ends soon.
func (p *snapshotWriter) kill() { p.stop(errKilled) }

func (p *snapshotWriter) stop(why error) {
	p.once.Do(func() {
		p.why = why
		close(p.killed)
	})
}

// dead returns why the snapshot was aborted, nil if it was not.
func (p *snapshotWriter) dead() error {
	select {
	case <-p.killed:
		return p.why
	default:
		return nil
	}
}

// unwanted returns why the rest of the snapshot is not needed, nil if it is: it was aborted, or its replicas have gone.
func (p *snapshotWriter) unwanted() error {
	if p.transfer != nil && p.transfer.Dead() {
		return errKilled
	}
	return p.dead()
}

// take encodes an entry, under its shard's lock.
func (p *snapshotWriter) take(v *engine.View, e engine.Entry) {
	switch {
	case p.dead() != nil:
	case p.inPieces(v, e):
	case p.cut.Walks(v):
		p.gather(&p.walked, v, e, p.newBlock)
	default:
		p.mu.Lock()
		p.bytes += p.gather(&p.early, v, e, p.reused)
		p.mu.Unlock()
	}
}

// inPieces begins a value that is written in pieces. It reports false for others.
func (p *snapshotWriter) inPieces(v *engine.View, e engine.Entry) bool {
	if p.words || p.excludes(e) {
		return false
	}
	pieces := rdb.NewPieces(p.format, v, e)
	if pieces == nil {
		return false
	}
	l := large{v.Hold(e), pieces}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.large = append(p.large, l)
	return true
}

// writeLarge writes the values that inPieces began, one piece per hold of the lock.
func (p *snapshotWriter) writeLarge(out output) error {
	p.mu.Lock()
	list := p.large
	p.large = nil
	p.done += len(list)
	p.mu.Unlock()
	for i, l := range list {
		p.f.slower(p.f.p.saveDelay, 1, p.unwanted)
		if err := p.writePieces(out, l); err != nil {
			endImages(list[i:])
			return err
		}
		endImages(list[i : i+1])
	}
	return nil
}

// endImages ends the images of values that are written or given up.
func endImages(list []large) {
	for _, l := range list {
		l.held.Do(l.pieces.End)
		l.held.Done()
	}
}

// giveUp ends the images of all values that have not been begun.
func (p *snapshotWriter) giveUp() {
	p.mu.Lock()
	list := p.large
	p.large = nil
	p.mu.Unlock()
	endImages(list)
}

func (p *snapshotWriter) writePieces(out output, l large) error {
	if is, err := out.dump.Image(l.pieces); is {
		return err
	}
	err := out.dump.Begin(l.pieces.DB())
	var room []byte
	for more := true; more && err == nil; {
		if err = p.unwanted(); err != nil {
			break
		}
		var b []byte
		l.held.Do(func() {
			if more = l.pieces.Next(); !more || l.pieces.Len() >= blockBytes {
				b = l.pieces.Take(room)
			}
		})
		if b != nil {
			err = out.dump.Piece(b)
			room = b
		}
		runtime.Gosched() // so that a waiter gets the lock before this goroutine takes it again
	}
	p.mu.Lock()
	p.bytes += l.pieces.Early()
	p.mu.Unlock()
	return err
}

// gather encodes an entry into g and returns its encoded size.
func (p *snapshotWriter) gather(g *gathered, v *engine.View, e engine.Entry, newBlock func() block) int {
	g.keys++
	if p.leavesOut(e) {
		return 0
	}
	if g.block.none() {
		g.block = newBlock()
	}
	before := g.block.len()
	if p.words {
		g.block.words.entry(v, e)
	} else {
		g.block.dump.Entry(v, e)
	}
	n := g.block.len()
	if n >= blockBytes {
		g.full = append(g.full, g.block)
		g.block = block{}
	}
	return n - before
}

// drain returns the full blocks; all blocks at the end.
func (g *gathered) drain(all bool) (blocks []block, keys int) {
	blocks, keys = g.full, g.keys
	g.full, g.keys = nil, 0
	if all && !g.block.none() {
		blocks = append(blocks, g.block)
		g.block = block{}
	}
	return blocks, keys
}

// drain returns the blocks to write; all of them at the end.
func (p *snapshotWriter) drain(all bool) (blocks []block, keys int) {
	blocks, keys = p.walked.drain(all)
	p.mu.Lock()
	defer p.mu.Unlock()
	early, n := p.early.drain(all)
	p.done += keys + n
	return append(blocks, early...), keys + n
}

// pass writes what was gathered; all of it at the end.
func (p *snapshotWriter) pass(out output, all bool) error {
	blocks, keys := p.drain(all)
	p.f.slower(p.f.p.saveDelay, keys, p.unwanted)
	for _, b := range blocks {
		if err := p.unwanted(); err != nil {
			return err
		}
		if err := out.block(b); err != nil {
			return err
		}
		p.again(b)
	}
	return p.writeLarge(out)
}

// offerMicros is how long the walk keeps a processor before it yields. Programs that never sleep take a whole slice at each
// yield, so the walk then runs for at least as long as it was away. Otherwise it would hardly make progress beside them.
const offerMicros = 250

// offer yields the processor when it is time.
func (p *snapshotWriter) offer() {
	if now := engine.Monotonic(); now >= p.due {
		offer()
		back := engine.Monotonic()
		p.due = back + max(offerMicros, back-now)
	}
}

// write walks the keys and writes the file. The caller holds no lock.
func (p *snapshotWriter) write(to io.Writer) error {
	out, err := p.newOutput(to)
	if err != nil {
		return err
	}
	defer inShortSlices()()
	p.due = engine.Monotonic() + offerMicros
	whole := p.cut.Walk(func() {
		p.offer()
		if err == nil {
			err = p.pass(out, false)
		} else {
			p.drain(false) // discards, since the file is not written
			p.giveUp()
		}
	})
	if err == nil {
		err = p.pass(out, true)
	}
	switch why := p.unwanted(); {
	case why != nil:
		return why
	case err != nil:
		return err
	case !whole:
		return errReplaced
	}
	return out.end()
}

// progress returns how many keys are written, of how many, and how many bytes were copied early because they were about to
// change.
func (p *snapshotWriter) progress() (done, total, early int) {
	if p == nil {
		return 0, 0, 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done, p.total, p.bytes
}

// ended cleans up after a snapshot that could not be written.
func (p *snapshotWriter) ended(err error) {
	if err != nil {
		p.cut.Abort()
		p.giveUp()
	}
}

// output is the file in either form.
type output struct {
	dump  *rdb.Writer
	words *journal.CommandWriter
}

func (p *snapshotWriter) newOutput(to io.Writer) (o output, err error) {
	if p.words {
		return p.f.newWordsOutput(to, p.now, p.at, p.libraries)
	}
	o.dump = dumpfile.Begin(p.f.s, to, p.now, p.base, p.libraries, p.format, p.facts...)
	o.dump.Between = func() error {
		p.offer()
		return p.unwanted()
	}
	return o, nil
}

func (f *Files) newWordsOutput(to io.Writer, now int64, at journal.LSN, libraries []string) (o output, err error) {
	o.words, err = journal.NewCommandWriter(to, at, now, true, f.p.timestamps.Load())
	if fence := f.s.Keyspace.Fences.Last(); fence != 0 && err == nil {
		err = o.words.Append(resp.AppendCommand(nil, []byte("LK.FENCE"), command.Number(fence)))
	}
	for _, code := range libraries {
		if err == nil {
			err = o.words.Append(resp.AppendCommand(nil, []byte("FUNCTION"), []byte("LOAD"), []byte(code)))
		}
	}
	return o, err
}

func (o output) block(b block) error {
	if o.words != nil {
		return o.words.Append(b.words.text)
	}
	return o.dump.Block(b.dump)
}

func (o output) end() error {
	if o.words != nil {
		return o.words.Flush()
	}
	return o.dump.End()
}

// writeBase writes the base of an append-only file from the present keys. The caller holds all locks.
func (f *Files) writeBase(c *command.Ctx, to io.Writer) error {
	if f.p.preamble.Load() {
		return dumpfile.Write(c, to, dumpfile.What{Base: true})
	}
	out, err := f.newWordsOutput(to, c.Now, c.KS.Journal.End(), f.s.Functions.Libraries(c.KS))
	all := f.newWords()
	defer func(db int) { c.DB = db }(c.DB)
	for c.DB = 0; c.DB < c.KS.Databases(); c.DB++ {
		c.EachStored(func(e engine.Entry) {
			all.entry(&c.View, e)
			if len(all.text) >= blockBytes && err == nil {
				err = out.block(block{words: all})
				all.text = all.text[:0]
			}
		})
	}
	if err == nil {
		err = out.block(block{words: all})
	}
	if err == nil {
		err = out.end()
	}
	return err
}
