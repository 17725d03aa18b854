// Package rdb, internal to the server, is Redis's format for values and files, version 12, that of Redis 8:
// what DUMP replies and RESTORE takes, and dump.rdb. It reads what Redis since its
// first version wrote and what Valkey 9 does (but no values of modules), and writes
// what Redis 8 does: byte for byte where a value's form is the same, which is so
// for all but large sets and hashes, whose order is no one's. What Redis has no
// type for is written as a module's values are (module.go).
//
// A payload is a byte for the type, the value, the version (uint16 LE) and the
// CRC-64 of all before it (uint64 LE). Small collections are the listpacks that
// both keep in memory. A file (file.go) has many of them, with their keys.
//
// What is read is trusted in nothing: after Load a value is as whole as one that
// commands made.
package rdb

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/zset"
)

// Version is the version of the format that is written, and the highest that is
// read.
const Version = 12

// Function is the type of an entry that is a library's code; FunctionOld is what
// release candidates of Redis 7 wrote.
const (
	FunctionOld = 246
	Function    = 245
)

// FooterBytes is the length of what ends a payload.
const FooterBytes = 2 + 8

var (
	// ErrChecksum is returned for a payload that is too short, of a later
	// version, or damaged.
	ErrChecksum = errors.New("rdb: version or checksum are wrong")
	// ErrFormat is returned, with the reason, for a payload that is no value.
	ErrFormat = errors.New("rdb: bad data format")
)

// The types of values. Those that are written are named for what they hold,
// the others for what is different.
const (
	typeString         = 0
	typeListPlain      = 1 // elements
	typeSet            = 2
	typeZSetText       = 3 // scores as text
	typeHash           = 4
	typeZSet           = 5
	typeModuleOld      = 6 // of release candidates
	typeModule         = 7
	typeHashZipmap     = 9
	typeListZiplist    = 10
	typeSetIntset      = 11
	typeZSetZiplist    = 12
	typeHashZiplist    = 13
	typeListZiplists   = 14
	typeStream1        = 15 // without what entries there ever were
	typeHashPacked     = 16
	typeZSetPacked     = 17
	typeList           = 18
	typeStream2        = 19 // without when consumers last got something
	typeSetPacked      = 20
	typeStream         = 21
	typeHashDuePlain   = 22 // deadlines are not relative; Valkey's own type, see decoder.hash
	typeHashPackedDue1 = 23 // without the first deadline in front
	typeHashDue        = 24
	typeHashPackedDue  = 25
)

// Format is how values are written.
type Format struct {
	// Compress has strings compressed that become shorter so.
	Compress bool
	// AppendScore appends a score that is no integer as text, as the protocol has
	// it.
	AppendScore func(dst []byte, score float64) []byte
	// Usage is what is written of a key's use, in files.
	Usage Usage
	// For is who is to read the file.
	For Audience
}

// Audience is who is to read a file, which decides its version and which types are in it.
type Audience byte

// The audiences: whoever reads what Redis 8 writes; any Redis from 7.0 on, where only hashes with deadlines of fields, which
// Redis 7.0 does not have, are as Redis 8 writes them; Valkey up to version 8 and Redis 7.2, for which fields have no
// deadlines; Valkey from version 9 on; Redis 5 and 6, which know no listpacks but streams'; Redis 7.0 alone; and those that
// want a version of Redis after 8.0, which have types of their own, and read what Redis 8.0 writes.
const (
	ForAny Audience = iota
	ForRedis
	ForValkey8
	ForValkey
	ForRedis6
	ForRedis70
	ForRedis13
	ForRedis14
	ForRedis15
)

// byVersion are the audiences by version of the files of which they take all types.
var byVersion = [...]Audience{9: ForRedis6, 10: ForRedis70, 11: ForValkey8, 12: ForAny, 13: ForRedis13, 14: ForRedis14, 15: ForRedis15}

// The versions that ForVersion knows.
const (
	VersionLeast = 9
	VersionMost  = len(byVersion) - 1
)

// ForVersion is who reads files of a version of Redis. ok is false for one below VersionLeast or above VersionMost.
func ForVersion(version int) (who Audience, ok bool) {
	if version < VersionLeast || version > VersionMost {
		return ForAny, false
	}
	return byVersion[version], true
}

// Deadlines tells whether fields of hashes have deadlines in the file.
func (r Audience) Deadlines() bool {
	return r != ForValkey8 && r != ForRedis6 && r != ForRedis70
}

// Functions tells whether the file may have libraries of functions.
func (r Audience) Functions() bool { return r != ForRedis6 }

// strict tells whether the reader is a Redis after 8.0, which looks at more of what it loads.
func (r Audience) strict() bool { return r >= ForRedis13 }

// magic is what a file begins with.
func (r Audience) magic() string {
	switch r {
	case ForValkey:
		return "VALKEY080"
	case ForRedis:
		return "REDIS0010"
	}
	version := VersionLeast
	for byVersion[version] != r {
		version++
	}
	return fmt.Sprintf("REDIS%04d", version)
}

// typeFor is the type that a value has in the file.
func (r Audience) typeFor(e engine.Entry) byte {
	t := typeOf(e)
	switch {
	case r == ForRedis6:
		return typeOf6(t)
	case (r == ForRedis || r == ForRedis70) && t == typeSetPacked:
		return typeSet
	case (r == ForRedis || r == ForRedis70) && t == typeStream:
		return typeStream2
	case t != typeHashDue && t != typeHashPackedDue:
		return t
	case r == ForValkey:
		return typeHashDuePlain
	case !r.Deadlines():
		return typeHash
	}
	return t
}

// typeOf6 is the type of Redis 5 and 6 for what has type t today. Collections are written by elements, which these
// versions make ziplists of where they are short.
func typeOf6(t byte) byte {
	switch t {
	case typeList:
		return typeListPlain
	case typeSetPacked:
		return typeSet
	case typeZSetPacked:
		return typeZSet
	case typeHashPacked, typeHashDue, typeHashPackedDue:
		return typeHash
	case typeStream:
		return typeStream1
	}
	return t
}

// Usage is what a file says of how keys were used, which Redis writes where
// maxmemory-policy goes by it.
type Usage byte

// What may be said: nothing, how long a key was idle, or how often it was used.
const (
	NoUsage   Usage = 0
	IdleUsage Usage = opIdle
	FreqUsage Usage = opFreq
)

// Limits are those that decide the form of a value that is read.
type Limits struct {
	Hash hash.Limits
	List list.Limits
	Set  set.Limits
	ZSet zset.Limits
	// MaxString bounds what a compressed string may become, in bytes.
	MaxString int
	// Unchecked has the checksum of a payload not verified.
	Unchecked bool
	// Valkey has payloads of Valkey's own version taken, too.
	Valkey bool
	// Sanitize has values refused that sanitize-dump-payload has Redis refuse, although they could be put right.
	Sanitize bool
}

// Value is what was read: a string or a limiter's bytes, or an object.
type Value struct {
	Kind engine.Kind
	// Verified is how many structures were looked through to be taken over as they
	// are (INFO's dump_payload_sanitizations). It is Load's alone.
	Verified int32
	// Repairs are what was wrong with the payload and is right in the value; nil if it is as it was written. It is Load's alone.
	Repairs []string
	String  []byte
	Object  any
}

// checksum is the CRC-64 of b.
func checksum(b []byte) uint64 { return addChecksum(0, b) }

// AppendFooter ends a payload, all of which is in payload.
func AppendFooter(payload []byte) []byte {
	payload = binary.LittleEndian.AppendUint16(payload, Version)
	return binary.LittleEndian.AppendUint64(payload, checksum(payload))
}

// CheckFooter returns a payload without its footer. ok is false if it is too
// short, of a later version, or the checksum is wrong. With valkey, payloads of
// Valkey's own version are taken, too.
func CheckFooter(payload []byte, valkey bool) (body []byte, ok bool) {
	n := len(payload) - FooterBytes
	if n < 0 {
		return nil, false
	}
	if version := payloadVersion(payload); version > Version && !(valkey && version == VersionValkey) {
		return nil, false
	}
	return payload[:n], binary.LittleEndian.Uint64(payload[n+2:]) == checksum(payload[:n+2])
}

// payloadVersion is the version of a payload that is long enough to have one.
func payloadVersion(payload []byte) int {
	return int(binary.LittleEndian.Uint16(payload[len(payload)-FooterBytes:]))
}

// AppendDump appends a payload with the value of an entry.
func AppendDump(dst []byte, e engine.Entry, f Format) []byte {
	begin := len(dst)
	w := encoder{Format: f, b: dst}
	t := typeOf(e)
	w.byte(t)
	w.value(e, t)
	dst = binary.LittleEndian.AppendUint16(w.b, Version)
	return binary.LittleEndian.AppendUint64(dst, checksum(dst[begin:]))
}

// Load reads a payload. What it returns shares nothing with it, but for the
// bytes of a string or a limiter.
func Load(payload []byte, lim Limits) (Value, error) {
	body, ok := CheckFooter(payload, lim.Valkey)
	if !ok && (!lim.Unchecked || body == nil) {
		return Value{}, ErrChecksum
	}
	r := decoder{Reader: Reader{rest: body, maxString: lim.MaxString}, lim: lim, valkey: payloadVersion(payload) == VersionValkey}
	v := r.value(r.Byte())
	if r.Failed() {
		return Value{}, fmt.Errorf("%w: %s", ErrFormat, r.problem)
	}
	v.Verified, v.Repairs = int32(r.verified), r.repairs
	return v, nil
}
