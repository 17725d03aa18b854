// Package zone, internal to the server, has the time zones of the IANA database, as they are in the
// program: what a journal or a file makes must not depend on the zones of the machine that reads
// it.
//
// zoneinfo.zip is the database as Go's distribution has it (lib/time), which is in the public domain.
package zone

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"errors"
	"io"
	"sync"
	"time"
)

//go:embed zoneinfo.zip
var database []byte

// files are the zones by name. They are looked for when one is needed first.
var files = sync.OnceValue(func() map[string]*zip.File {
	r, err := zip.NewReader(bytes.NewReader(database), int64(len(database)))
	if err != nil {
		panic("zone: " + err.Error())
	}
	all := make(map[string]*zip.File, len(r.File))
	for _, f := range r.File {
		if !f.FileInfo().IsDir() {
			all[f.Name] = f
		}
	}
	return all
})

// ErrUnknown is that there is no such zone.
var ErrUnknown = errors.New("no such time zone")

// loaded are the zones that were asked for, by name.
var loaded sync.Map

// Load finds a zone by its IANA name. Its letters are in the case that the database has.
func Load(name string) (*time.Location, error) {
	if at, ok := loaded.Load(name); ok {
		return at.(*time.Location), nil
	}
	at, err := read(name)
	if err == nil {
		loaded.Store(name, at)
	}
	return at, err
}

func read(name string) (*time.Location, error) {
	f := files()[name]
	if f == nil {
		return nil, ErrUnknown
	}
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	at, err := time.LoadLocationFromTZData(name, data)
	if err != nil {
		return nil, err
	}
	return time.LoadLocationFromTZData(name, spelledOut(at, data))
}

// Bounds returns since when, and until when, the clocks of a time's zone go as they do then: zero times where that is for ever.
// It is time.Time.ZoneBounds, whose end is not after the time on the last day of a leap year, by years that are told by a rule.
func Bounds(t time.Time) (since, until time.Time) {
	since, until = t.ZoneBounds()
	if !until.IsZero() && !until.After(t) {
		until = time.Date(t.UTC().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC).In(t.Location())
	}
	return since, until
}
