package server

// Files in Redis's dump format: all keys of a keyspace, and its functions.

import (
	"io"
	"sync"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/rdb"
)

// writeFile writes a file of what there is. All keys are held.
func (f *family) writeFile(c *command.Ctx, to io.Writer, data, functions bool) (keys int64, err error) {
	w := rdb.NewWriter(to, f.dumps.FileFormat(), f.setting("rdbchecksum") == "yes")
	w.Origin(rdb.Origin{Version: command.RedisVersion, NowMicros: c.Now, UsedMemory: memoryUsage().objects})
	if functions {
		for _, code := range f.s.Libraries(c.KS) {
			w.Library(code)
		}
	}
	defer func(db int) { c.DB = db }(c.DB)
	tally := c.Tally()
	for c.DB = 0; c.DB < c.KS.Databases() && data; c.DB++ {
		if st := &tally.DBs[c.DB]; st.Keys > 0 {
			w.Database(c.DB, st.Keys, st.Expires)
			c.Each(func(e engine.Entry) bool { return w.Entry(&c.View, e) == nil })
		}
	}
	return w.Keys(), w.End()
}

// readFile enters what a file has. All keys are held. Without replace a key or a
// library that is there already is an error; flush has the libraries removed that
// there are.
func (f *family) readFile(c *command.Ctx, from io.Reader, size int64, flush, replace bool) error {
	into := rdb.Into{KS: c.KS, View: &c.View, Replace: replace}
	l, codes := f.loader(c, from, size, into.Enter)
	if err := l.Load(); err != nil {
		return err
	}
	into.Done()
	f.s.LoadedKeys.Store(l.Keys())
	f.s.ExpiredKeys.Store(l.Expired())
	if f.setting("sanitize-dump-payload") == "yes" {
		f.s.Verified.Add(l.Verified())
	}
	if problem := f.s.LoadCode(c, *codes, flush, replace); problem != "" {
		return errorText(problem)
	}
	return nil
}

// loader reads a file and gathers the code of its libraries.
func (f *family) loader(c *command.Ctx, from io.Reader, size int64, enter func([]rdb.Item) error) (*rdb.Loader, *[][]byte) {
	codes := new([][]byte)
	return rdb.NewLoader(from, rdb.LoadOptions{
		Limits:    f.dumps.Limits(),
		Databases: c.KS.Databases(),
		Size:      size,
		Unchecked: f.setting("rdbchecksum") == "no",
		NowMillis: c.Now / 1000,
		Enter:     enter,
		Library: func(code []byte) error {
			*codes = append(*codes, append([]byte(nil), code...))
			return nil
		},
		Passed: func(_ int, key []byte) { f.s.Logf('n', "a key is left out since its value is empty: %.200q", key) },
	}), codes
}

// clashes tells whether a file has a key that is there already. All keys are held.
func (f *family) clashes(c *command.Ctx, from io.Reader, size int64) (bool, error) {
	found := false
	var mu sync.Mutex
	defer func(db int) { c.DB = db }(c.DB)
	l, _ := f.loader(c, from, size, func(items []rdb.Item) error {
		mu.Lock()
		defer mu.Unlock()
		for i := range items {
			c.DB = items[i].DB
			found = found || c.Peek(items[i].Key).Ok()
		}
		return nil
	})
	return found, l.Load()
}

type errorText string

func (e errorText) Error() string { return string(e) }
