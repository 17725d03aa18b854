// Package value, internal to the server, is what commands over keys of any kind need to know of
// values: the name of their form, what they take, a copy.
package value

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/lock"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/engine/stream"
	"github.com/limitkv/limitkv/zset"
)

// encoded is an object that has a name for its form.
type encoded interface{ Encoding() string }

// sized is an object that knows what it takes.
type sized interface{ MemoryUsage() int }

// Encoding is what OBJECT ENCODING replies.
func Encoding(e engine.Entry) string {
	switch e.Kind() {
	case engine.KindString:
		return e.StringEncoding()
	case engine.KindLimiter:
		return "packed"
	case engine.KindLock:
		var work lock.Lock
		return e.Lock(&work).Encoding()
	case engine.KindStream:
		return "stream"
	}
	if x, ok := e.Object().(encoded); ok {
		return x.Encoding()
	}
	return "unknown"
}

// MemoryUsage is what MEMORY USAGE replies: the bytes of the entry and of the
// object behind it.
func MemoryUsage(e engine.Entry) int {
	n := e.Memory()
	if e.InBytes() {
		return n
	}
	if x, ok := e.Object().(sized); ok {
		n += x.MemoryUsage()
	}
	return n
}

// Elements is about how many elements, of a fair size, are gone over by who goes over all of a value.
func Elements(e engine.Entry) int {
	n := e.Len()
	switch o := e.Object().(type) {
	case nil:
		return n / engine.ElementBytes
	case *stream.Stream:
		for _, g := range o.Groups() {
			n += g.Pending()
		}
	}
	return n
}

// Clone copies an object. nil stays nil: values of plain bytes are
// copied with their entry.
func Clone(obj any) any {
	switch o := obj.(type) {
	case *zset.Set:
		return o.Clone()
	case *delayqueue.Queue:
		return o.Clone()
	case *lock.Lock:
		return o.Clone()
	case *limiter.Named:
		return o.Clone()
	case *hash.Hash:
		h := o.Clone()
		return &h
	case *set.Set:
		s := o.Clone()
		return &s
	case *list.List:
		l := o.Clone()
		return &l
	case *stream.Stream:
		s := o.Clone()
		return &s
	}
	return nil
}
