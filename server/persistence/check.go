package persistence

// limitkv check prints what a file contains and whether it is intact.

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/engine/rdb"
	"github.com/limitkv/limitkv/engine/vfs"
	"github.com/limitkv/limitkv/server/params"
)

// Mending is what Check may do to an append-only file. Check keeps a copy of what it cuts.
type Mending struct {
	// Fix cuts a damaged end.
	Fix bool
	// TruncateTo cuts what follows the last time stamp up to this one, in Unix seconds; 0: nothing.
	TruncateTo int64
	// Agree is called before anything is cut; nil agrees.
	Agree func(question string) bool
}

// Check checks a snapshot, an append-only file or the directory of one, and prints what it finds. It returns the first fault
// that it did not mend.
func Check(path string, how Mending, print func(line string)) error {
	dumps := params.NewConfig().Dumps()
	var mu sync.Mutex // guards print, since several goroutines read
	_, err := journal.Check(journal.CheckOptions{
		FS: vfs.OS, Path: path, Fix: how.Fix, TruncateTo: how.TruncateTo, Agree: how.Agree, Print: print,
		RDB: func(file vfs.File, size int64) (end int64, err error) {
			l := rdb.NewLoader(io.NewSectionReader(file, 0, size), rdb.LoadOptions{
				Limits: dumps.Limits(), Databases: engine.DatabasesMax, Size: size,
				Enter:   func([]rdb.Item) error { return nil },
				Library: func([]byte) error { return nil },
				Repaired: func(db int, key []byte, repairs []string) {
					mu.Lock()
					defer mu.Unlock()
					print(fmt.Sprintf("RDB: key %.200q of database %d is repaired when it is loaded: %s", key, db, strings.Join(repairs, "; ")))
				},
			})
			if err := l.Load(); err != nil {
				return 0, err
			}
			rest, err := io.Copy(io.Discard, l.Rest())
			if err == nil {
				sum := "the checksum is right"
				if !l.Summed() {
					sum = "written without a checksum"
				}
				print(fmt.Sprintf("RDB: %d keys, %d bytes, %s", l.Keys(), size-rest, sum))
			}
			return size - rest, err
		},
	})
	return err
}
