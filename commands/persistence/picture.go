package persistence

// Pictures: what a file is made of in the background, as a cut of the engine has it.

import (
	"errors"
	"io"
	"sync"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/commands/dumpfile"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/engine/rdb"
	"github.com/limitkv/limitkv/resp"
)

// picture is what a file is made of. It begins under all locks and is written
// without.
type picture struct {
	f         *family
	cut       *engine.Cut
	libraries []string
	now       int64
	at        journal.LSN
	base      bool // of the append-only file
	words     bool // it is written as commands

	killed chan struct{} // closed when nobody wants it any more
	once   sync.Once

	mu    sync.Mutex
	block block
	full  []block
	keys  int // that were taken since the last look
}

// block is keys as they are to be written: in Redis's dump format, or as commands.
type block struct {
	dump  *rdb.Block
	words *words
}

// blockBytes is how much gathers before it is written.
const blockBytes = 256 << 10

// errReplaced is for a keyspace that a test's snapshot took the place of, errKilled for
// a picture that nobody wants any more.
var (
	errReplaced = errors.New("the keyspace was replaced meanwhile")
	errKilled   = errors.New("it was given up")
)

// begin makes a picture of now. All keys are held.
func (f *family) begin(c *command.Ctx, base bool) *picture {
	p := &picture{f: f, libraries: f.s.Functions.Libraries(c.KS), now: c.Now, at: c.KS.Journal.End(), base: base,
		words: base && !f.p.preamble.Load(), killed: make(chan struct{})}
	p.block = p.newBlock()
	p.cut = c.BeginCut(p.take)
	return p
}

func (p *picture) newBlock() block {
	if p.words {
		return block{words: p.f.newWords()}
	}
	return block{dump: rdb.NewBlock(p.f.format())}
}

func (f *family) format() rdb.Format { return f.dumps.FileFormat() }

// kill gives the picture up. It is ended soon, by whoever writes it.
func (p *picture) kill() { p.once.Do(func() { close(p.killed) }) }

func (p *picture) dead() bool {
	select {
	case <-p.killed:
		return true
	default:
		return false
	}
}

// take gathers an entry, under its lock.
func (p *picture) take(v *engine.View, e engine.Entry) {
	if p.dead() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys++
	n := 0
	if p.words {
		p.block.words.entry(v, e)
		n = len(p.block.words.text)
	} else {
		p.block.dump.Entry(v, e)
		n = p.block.dump.Len()
	}
	if n >= blockBytes {
		p.full = append(p.full, p.block)
		p.block = p.newBlock()
	}
}

// drain returns what is to be written; all of it at the end.
func (p *picture) drain(all bool) (blocks []block, keys int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	blocks, keys = p.full, p.keys
	p.full, p.keys = nil, 0
	if all {
		blocks = append(blocks, p.block)
	}
	return blocks, keys
}

// write walks the keys and writes the file. No lock is held.
func (p *picture) write(to io.Writer) error {
	out, err := p.f.newOutput(to, p.now, p.at, p.base, p.words, p.libraries)
	flush := func(all bool) {
		blocks, keys := p.drain(all)
		p.f.slower(p.f.p.saveDelay, keys, p.killed)
		for _, b := range blocks {
			if err == nil && !p.dead() {
				err = out.block(b)
			}
		}
	}
	whole := p.cut.Walk(func() { flush(false) })
	flush(true)
	switch {
	case p.dead():
		return errKilled
	case err != nil:
		return err
	case !whole:
		return errReplaced
	}
	return out.end()
}

// done ends a picture that could not be written.
func (p *picture) done(err error) {
	if err != nil {
		p.cut.Abort()
	}
}

// output is a file that is written, in either form.
type output struct {
	dump  *rdb.Writer
	words *journal.CommandWriter
}

func (f *family) newOutput(to io.Writer, now int64, at journal.LSN, base, words bool, libraries []string) (o output, err error) {
	if !words {
		o.dump = dumpfile.Begin(f.s, to, now, base, libraries)
		return o, nil
	}
	o.words, err = journal.NewCommandWriter(to, at, now, true, f.p.timestamps.Load())
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

// writeBase writes the base of an append-only file of what there is. All keys are held.
func (f *family) writeBase(c *command.Ctx, to io.Writer) error {
	if f.p.preamble.Load() {
		return dumpfile.Write(c, to, dumpfile.What{Base: true})
	}
	out, err := f.newOutput(to, c.Now, c.KS.Journal.End(), true, true, f.s.Functions.Libraries(c.KS))
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
