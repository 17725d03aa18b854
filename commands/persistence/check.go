package persistence

// limitkv check: what is in a file, and whether all of it is whole.

import (
	"fmt"
	"io"

	"github.com/limitkv/limitkv/commands/params"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/engine/rdb"
	"github.com/limitkv/limitkv/engine/vfs"
)

// Check checks a snapshot, an append-only file or the directory of one, and prints
// what it finds. fix cuts a damaged end of an append-only file. Its error is the
// first thing that is wrong and was not mended.
func Check(path string, fix bool, print func(line string)) error {
	dumps := params.NewConfig().Dumps()
	_, err := journal.Check(journal.CheckOptions{
		FS: vfs.OS, Path: path, Fix: fix, Print: print,
		RDB: func(file vfs.File, size int64) (end int64, err error) {
			l := rdb.NewLoader(io.NewSectionReader(file, 0, size), rdb.LoadOptions{
				Limits: dumps.Limits(), Databases: engine.DatabasesMax, Size: size,
				Enter:   func([]rdb.Item) error { return nil },
				Library: func([]byte) error { return nil },
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
