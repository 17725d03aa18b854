// Package value, internal to the server, has what commands on keys of any type need of values: their encoding, their memory, a
// copy.
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

// encoded is an object that names its encoding.
type encoded interface{ Encoding() string }

// sized is an object that knows its memory usage.
type sized interface{ MemoryUsage() int }

// Encoding returns the reply of OBJECT ENCODING.
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

// MemoryUsage returns the reply of MEMORY USAGE: the bytes of the entry and of its object.
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

// Elements returns about how many elements of normal size a command visits that processes the whole value.
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

// Clone copies an object. nil stays nil: a value stored as plain bytes is copied with its entry.
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
