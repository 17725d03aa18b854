// Package rdb, internal to the server, is Redis's format for values and files, version 12, as in Redis 8: what DUMP
// returns and RESTORE takes, and dump.rdb. It reads what all versions of Redis up to 8.10 and Valkey 9 write, except arrays
// and values of modules. It writes the same bytes as Redis 8 for a value of the same form, except for large sets and hashes, whose
// order is undefined. Values for which Redis has no type are written as values of modules (module.go).
//
// A payload is a byte for the type, the value, the version (uint16 LE) and the CRC-64 of everything before it (uint64
// LE). Small collections are written as listpacks, which is their form in memory in Redis and here. A file (file.go)
// contains many values, with their keys.
//
// Input is not trusted: Load returns a value as valid as one that commands made, or an error.
package rdb

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/zset"
)

// Version is the version of the format that is written, and the highest version of a payload that is read.
const Version = 12

// Function is the type of an entry with a library's code. FunctionOld is the type that release candidates of Redis 7
// wrote.
const (
	FunctionOld = 246
	Function    = 245
)

// FooterBytes is the length of a payload's footer.
const FooterBytes = 2 + 8

var (
	// ErrChecksum is returned for a payload that is too short, of a later
	// version, or damaged.
	ErrChecksum = errors.New("rdb: version or checksum are wrong")
	// ErrFormat is returned, with the reason, for a payload that contains no valid value.
	ErrFormat = errors.New("rdb: bad data format")
)

// The types of values. Types that are written are named after their content, the others after their difference.
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
	typeStream1        = 15 // without facts about deleted entries
	typeHashPacked     = 16
	typeZSetPacked     = 17
	typeList           = 18
	typeStream2        = 19 // without the time at which consumers last got an entry
	typeSetPacked      = 20
	typeStream3        = 21 // without what producers added
	typeHashDuePlain   = 22 // absolute deadlines; Valkey uses this number for its own type, see decoder.hash
	typeHashPackedDue1 = 23 // without the first deadline before it
	typeHashDue        = 24
	typeHashPackedDue  = 25
	typeStream4        = 26 // without the entries that consumers have given back
	typeStream         = 27
	typeTemplatePacked = 29 // of a payload: a template's fields, and a listpack of the values
	typeTemplateRef    = 30 // of a file: a listpack of the values, behind the number of their template
	typeTemplatePlain  = 31 // of a payload: a template's fields, and the values
	typeTemplateValues = 32 // of a file: the number of a template, and the values
)

// Format is how values are written.
type Format struct {
	// Compress compresses strings that become shorter by that.
	Compress bool
	// AppendScore appends the text of a non-integer score, as the protocol writes it.
	AppendScore func(dst []byte, score float64) []byte
	// Usage says which facts about a key's use a file contains.
	Usage Usage
	// For is the file's reader.
	For Audience
}

// Audience is the reader of a file. It decides the file's version and its types.
type Audience byte

// The audiences:
//   - ForAny: any reader of what Redis 8 writes.
//   - ForRedis: any Redis from 7.0 on. Hashes with field deadlines, which Redis 7.0 does not have, are as in Redis 8.
//   - ForValkey8: Valkey up to 8, and Redis 7.2. Fields have no deadlines.
//   - ForValkey: Valkey from 9 on.
//   - ForRedis6: Redis 5 and 6, where only streams have listpacks.
//   - ForRedis70: Redis 7.0 alone.
//   - ForRedis13 to ForRedis15: readers that request a version of files after Redis 8.0's. They have types of their
//     own, and also read what Redis 8.0 writes.
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

// byVersion maps a version of files to the audience that reads all types of that version.
var byVersion = [...]Audience{9: ForRedis6, 10: ForRedis70, 11: ForValkey8, 12: ForAny, 13: ForRedis13, 14: ForRedis14, 15: ForRedis15}

// The versions that ForVersion knows.
const (
	VersionLeast = 9
	VersionMost  = len(byVersion) - 1
)

// ForVersion returns the audience for files of a version of Redis. ok is false below VersionLeast or above VersionMost.
func ForVersion(version int) (who Audience, ok bool) {
	if version < VersionLeast || version > VersionMost {
		return ForAny, false
	}
	return byVersion[version], true
}

// Deadlines reports whether fields of hashes have deadlines in the file.
func (r Audience) Deadlines() bool {
	return r != ForValkey8 && r != ForRedis6 && r != ForRedis70
}

// Functions reports whether the file may contain libraries of functions.
func (r Audience) Functions() bool { return r != ForRedis6 }

// strict reports whether the reader is a Redis after 8.0, which checks more of what it loads.
func (r Audience) strict() bool { return r >= ForRedis13 }

// magic is the beginning of a file.
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
	case t == typeStream && r == ForRedis70:
		return typeStream2
	case t == typeStream && r != ForAny && r != ForRedis && r != ForRedis15: // only Redis 8.10 knows it
		return typeStream3
	case (r == ForRedis || r == ForRedis70) && t == typeStream3:
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

// typeOf6 is the type in Redis 5 and 6 for type t. Collections are written element by element; these versions convert
// short ones to ziplists.
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
	case typeStream3, typeStream:
		return typeStream1
	}
	return t
}

// Usage says which fact about a key's use a file contains. Redis writes the one that its maxmemory-policy needs.
type Usage byte

// The facts: none, how long a key was idle, or how often it was used.
const (
	NoUsage   Usage = 0
	IdleUsage Usage = opIdle
	FreqUsage Usage = opFreq
)

// Limits decide the form of values that are read.
type Limits struct {
	Hash hash.Limits
	List list.Limits
	Set  set.Limits
	ZSet zset.Limits
	// MaxString is the largest size of a decompressed string, in bytes.
	MaxString int
	// Unchecked skips the verification of a payload's checksum.
	Unchecked bool
	// Valkey also accepts payloads of Valkey's own version.
	Valkey bool
	// Later also accepts payloads of versions up to VersionMost, and those without a checksum, as a primary or a log of
	// Redis 8.10 has them.
	Later bool
	// Sanitize refuses values that Redis refuses with sanitize-dump-payload, although they could be repaired.
	Sanitize bool
}

// Value is a value that was read: the bytes of a string or a limiter, or an object.
type Value struct {
	Kind engine.Kind
	// Verified is how many structures were verified and taken over unchanged (INFO's dump_payload_sanitizations). Only
	// Load sets it.
	Verified int32
	// Repairs are the faults of the payload that were repaired; nil if there was none. Only Load sets it.
	Repairs []string
	String  []byte
	Object  any
}

// checksum is the CRC-64 of b.
func checksum(b []byte) uint64 { return addChecksum(0, b) }

// AppendFooter appends the footer to a whole payload.
func AppendFooter(payload []byte) []byte {
	payload = binary.LittleEndian.AppendUint16(payload, Version)
	return binary.LittleEndian.AppendUint64(payload, checksum(payload))
}

// CheckFooter returns a payload without its footer. ok is false if it is too short or of a version that lim does not accept,
// or if the checksum is wrong.
func CheckFooter(payload []byte, lim Limits) (body []byte, ok bool) {
	n := len(payload) - FooterBytes
	if n < 0 {
		return nil, false
	}
	most := Version
	if lim.Later {
		most = VersionMost
	}
	version := payloadVersion(payload)
	if version > most && !(lim.Valkey && version == VersionValkey) {
		return nil, false
	}
	sum := binary.LittleEndian.Uint64(payload[n+2:])
	return payload[:n], lim.Later && version <= most && sum == 0 || sum == checksum(payload[:n+2])
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

// Load reads a payload. The value shares no memory with it, except for the bytes of a string or a limiter.
func Load(payload []byte, lim Limits) (Value, error) {
	body, ok := CheckFooter(payload, lim)
	if !ok && (!lim.Unchecked || body == nil) {
		return Value{}, ErrChecksum
	}
	r := decoder{Reader: Reader{rest: body, maxString: lim.MaxString}, lim: lim, valkey: payloadVersion(payload) == VersionValkey}
	t := r.Byte()
	if t == opMeta && !r.valkey {
		f := frame{b: r.rest}
		if f.entry(t); !f.ok() {
			return Value{}, fmt.Errorf("%w: %s", ErrFormat, cmp.Or(f.problem, problemShort))
		}
		r.rest = r.rest[f.at:]
		t = r.Byte()
	}
	v := r.value(t)
	if r.Failed() {
		return Value{}, fmt.Errorf("%w: %s", ErrFormat, r.problem)
	}
	v.Verified, v.Repairs = int32(r.verified), r.repairs
	return v, nil
}
