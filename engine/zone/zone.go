// Package zone, internal to the server, contains the time zones of the IANA database. They are part of the program,
// because the result of replaying a journal or a file must not depend on the machine's own zones.
//
// zoneinfo.zip is the database from Go's distribution (lib/time). It is in the public domain.
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

// files are the zones by name. The list is built on first use.
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

// ErrUnknown is returned by Load for an unknown zone.
var ErrUnknown = errors.New("no such time zone")

// loaded are the zones that were loaded so far, by name.
var loaded sync.Map

// Load returns a zone by its IANA name, which is case-sensitive.
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

// Bounds returns since when and until when the zone's clocks have the same offset as at t, the zero Time for no limit.
// It is time.Time.ZoneBounds with a correction: on the last day of a leap year, in years that a rule describes, the end
// that ZoneBounds returns is not after t.
func Bounds(t time.Time) (since, until time.Time) {
	since, until = t.ZoneBounds()
	if !until.IsZero() && !until.After(t) {
		until = time.Date(t.UTC().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC).In(t.Location())
	}
	return since, until
}
