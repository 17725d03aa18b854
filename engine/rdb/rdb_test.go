package rdb

// Payloads from a real Redis 8.0.6 and from older versions, damaged payloads, and any bytes that a client may send.

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/packed"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/engine/stream"
	"github.com/limitkv/limitkv/zset"
)

// dumped are payloads of Redis 8.0.6 and, marked old, of earlier versions.
var dumped = []struct{ name, payload string }{
	{"int of 8 bits", "00c0070c00bfbb7c62798150db"},
	{"int of 16 bits", "00c1d4fe0c000db2b2e304944067"},
	{"int of 32 bits", "00c240e201000c0088507334b933ecca"},
	{"much compressed string", "00c3094064017878e057000178780c0096c1c2a34122fc16"},
	{"string", "000568656c6c6f0c00a804ebb69f1ebe43"},
	{"compressed string", "00c30b40b40361626361e0a5020162630c00e02d5f6c960c5d24"},
	{"list", "120102161600000005008161020101dffb02f2701101048001ff0c00ee96a1066fcb0c81"},
	{"quicklist", "12030213130000000300826530038265310382653203ff0213130000000300826533038265340382653503ff020f0f00000002008265360382653703ff0c002a98c4d9734dc392"},
	{"list with a plain node", "1203020a0a0000000100816102ff01c3406f6328017878e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e00b00017878020a0a0000000100816202ff0c00d95438bc49579e7c"},
	{"intset", "0b14040000000300000090eefeff010000002c0100000c006e2678ec1c13a788"},
	{"packed set", "140f0f00000003008161020101816202ff0c00fc4a5ef47c72389a"},
	{"set", "020101610c00a9e0ddbebef88424"},
	{"packed sorted set", "1127270000000800816302842d696e6605816102010181620283322e35048164028531652b323006ff0c00d70ce9df1528c024"},
	{"sorted set", "0503016200000000000004400161000000000000f03f016300000000000000800c009fa7198a3b21fbe0"},
	{"packed hash", "1012120000000400816602817602816e020c01ff0c00ca40a0412971173d"},
	{"packed hash with deadlines", "1900d8c32cbb03000025250000000900816e020c01f400d8c32cbb030000098166028176020001816d020d010001ff0c0065d5457442bbb351"},
	{"hash", "0401016601760c00668477964bac90b5"},
	{"hash with deadlines", "1800d8c32cbb0300000201016ec00c01016601760c00eb6548ece18b056a"},
	{"stream", "15011000000000000000010000000000000001c3353c123c000000190002010101020181660281670200200900002001401102050103600902030104200b401340030781680205010601ff0202010101010203020161010181ffffffffffffffff0100000000000000010000000000000001aedfe5fba1010000010105616c696365aedfe5fba1010000aedfe5fba101000001000000000000000100000000000000010162020181ffffffffffffffff00000c00fbf6d9636617756e"},
	{"empty stream", "15000000000000000000010167000081ffffffffffffffff00000c00345be72ccd7ab2b2"},
	{"old type 3", "030c026262023230026363023330036262620332303004626262620a3530303030303030303003636363033330300463636363093132333435363738390161013102616102313001620132036161610331303001630133046161616104313030300c00286a1294ef46681b"},
	{"old type 10", "0a303000000025000000080000c0010004c0020004c0030004016103016203016303d0a086010006e000bca06501000000ff0c00a9f641424aa83f14"},
	{"old type 1", "0118c001c002c003016101620163c2a08601000a36303030303030303030c001c002c003016101620163c2a08601000a36303030303030303030c001c002c003016101620163c2a08601000a363030303030303030300c000b7ace79e245ca15"},
	{"old type 13", "0d20200000001b000000060000016103c0010004016203c0020004016303c00300ff0c00c350527e2d27ffce"},
	{"old type 12", "0c20200000001b000000060000016103c0010004016203c0020004016303c00300ff0c0009243bfaddd400b4"},
	{"old type 14", "0e010d0d0000000a000000010000f8ff0c0062b0007e8e2f59fc"},
}

var (
	limits = Limits{
		Hash: hash.DefaultLimits, List: list.DefaultLimits, Set: set.DefaultLimits, ZSet: zset.DefaultLimits,
		MaxString: 1 << 20,
	}
	format = Format{Compress: true, AppendScore: appendScore}
)

// appendScore replaces the protocol's formatting.
func appendScore(dst []byte, f float64) []byte {
	if math.IsInf(f, 0) {
		return append(dst, strings.ToLower(strings.TrimPrefix(fmt.Sprint(f), "+"))...)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

// forced are limits with which a value stays in the large form that it had in Redis when its payload was made.
func forced(name string) Limits {
	lim := limits
	switch name {
	case "set":
		lim.Set = set.Limits{}
	case "sorted set":
		lim.ZSet = zset.Limits{}
	case "hash", "hash with deadlines":
		lim.Hash = hash.Limits{}
	}
	return lim
}

// entry puts a value into a keyspace of its own.
func entry(v Value) engine.Entry {
	ks := engine.New(engine.NewClock(), 1)
	view := &engine.View{KS: ks, Now: 1}
	view.Held.AddAll()
	view.Held.AddAll()
	return Put(view, []byte("k"), v, 0)
}

// check calls the check that every structure has for tests.
func check(t *testing.T, v Value) {
	t.Helper()
	if x, ok := v.Object.(interface{ Check() error }); ok {
		if err := x.Check(); err != nil {
			t.Fatalf("%v: %v", v.Kind, err)
		}
	}
}

func load(t *testing.T, payload []byte, lim Limits) Value {
	t.Helper()
	v, err := Load(payload, lim)
	if err != nil {
		t.Fatal(err)
	}
	check(t, v)
	return v
}

func TestPayloadsOfRedis(t *testing.T) {
	for _, d := range dumped {
		payload, _ := hex.DecodeString(d.payload)
		v := load(t, payload, forced(d.name))
		again := AppendDump([]byte("before"), entry(v), format)
		if !strings.HasPrefix(d.name, "old") && string(again) != "before"+string(payload) {
			t.Errorf("%s: %x\nbecame %x", d.name, payload, again[6:])
		}
	}
}

func TestDamage(t *testing.T) {
	refused := 0
	for _, d := range dumped {
		payload, _ := hex.DecodeString(d.payload)
		for i := range payload {
			wrong := bytes.Clone(payload)
			wrong[i] ^= 1 << (i % 8)
			if _, err := Load(wrong, limits); !errors.Is(err, ErrChecksum) {
				t.Fatalf("%s: byte %d may be changed", d.name, i)
			}
			body := wrong[:len(wrong)-FooterBytes]
			if i >= len(body) {
				continue
			}
			// With a right checksum it is another value, or none.
			v, err := Load(AppendFooter(bytes.Clone(body)), limits)
			if err != nil {
				refused++
			} else {
				check(t, v)
			}
			if _, err := Load(AppendFooter(bytes.Clone(body[:i])), limits); err == nil && i < len(body) {
				t.Fatalf("%s: cut after %d bytes it is a value", d.name, i)
			}
		}
	}
	if refused < 100 {
		t.Errorf("only %d of the damaged values were refused", refused)
	}
}

func TestVersions(t *testing.T) {
	for version, taken := range map[uint16][2]bool{ // whether it is accepted without and with Limits.Valkey
		0: {true, true}, Version: {true, true}, Version + 1: {}, VersionValkey - 1: {}, VersionValkey: {false, true}, VersionValkey + 1: {}, math.MaxUint16: {},
	} {
		payload := binary.LittleEndian.AppendUint16([]byte{typeString, 1, 'x'}, version)
		payload = binary.LittleEndian.AppendUint64(payload, checksum(payload))
		for i, valkey := range []bool{false, true} {
			lim := limits
			lim.Valkey = valkey
			if v, err := Load(payload, lim); (err == nil && string(v.String) == "x") != taken[i] || err != nil && !errors.Is(err, ErrChecksum) {
				t.Errorf("version %d, Valkey's %v: %q, %v", version, valkey, v.String, err)
			}
		}
	}
	for n := range FooterBytes {
		if _, ok := CheckFooter(make([]byte, n), Limits{Valkey: true}); ok {
			t.Errorf("%d bytes are a payload", n)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	kinds := map[string]int{}
	for range 300 {
		v := randomValue(rng)
		payload := AppendDump(nil, entry(v), format)
		w := load(t, payload, limits)
		if w.Kind != v.Kind {
			t.Fatalf("%v became %v", v.Kind, w.Kind)
		}
		again := AppendDump(nil, entry(w), format)
		if payload[0] == typeHash && again[0] == typeHashPacked || payload[0] == typeHashDue && again[0] == typeHashPackedDue {
			continue // a long value made it a table and was then overwritten; the loaded value has the smallest form
		}
		if len(again) != len(payload) {
			t.Fatalf("%v: %d bytes became %d", v.Kind, len(payload), len(again))
		}
		if !bytes.Equal(again, payload) && again[0] != typeSet && again[0] != typeHash && again[0] != typeHashDue {
			t.Fatalf("%v of type %d is not what it was", v.Kind, payload[0])
		}
		kinds[fmt.Sprint(payload[0])]++
	}
	if len(kinds) < 9 {
		t.Errorf("only types %v", kinds)
	}
}

func randomBytes(rng *rand.Rand) []byte {
	switch rng.IntN(4) {
	case 0:
		return strconv.AppendInt(nil, rng.Int64()>>rng.IntN(64), 10)
	case 1:
		return bytes.Repeat([]byte("ab"), rng.IntN(40))
	}
	b := make([]byte, rng.IntN(40))
	for i := range b {
		b[i] = byte(rng.IntN(1 + rng.IntN(256)))
	}
	return b
}

func randomValue(rng *rand.Rand) Value {
	n := 1 + rng.IntN(1+rng.IntN(700))
	switch rng.IntN(6) {
	case 0:
		return Value{Kind: engine.KindString, String: bytes.Repeat(randomBytes(rng), rng.IntN(50))}
	case 1:
		l := &list.List{}
		for range n {
			l.Push([][]byte{randomBytes(rng)}, rng.IntN(2) == 0, limits.List)
		}
		return Value{Kind: engine.KindList, Object: l}
	case 2:
		s := &set.Set{}
		ints := rng.IntN(2) == 0
		for range n {
			member := randomBytes(rng)
			if ints {
				member = strconv.AppendInt(nil, rng.Int64()>>rng.IntN(64), 10)
			}
			s.Add(member, limits.Set)
		}
		return Value{Kind: engine.KindSet, Object: s}
	case 3:
		z := &zset.Set{}
		for range n {
			z.Add(randomBytes(rng), math.Trunc(rng.NormFloat64()*100)/float64(1+rng.IntN(4)), 0, limits.ZSet)
		}
		return Value{Kind: engine.KindZSet, Object: z}
	case 4:
		h := &hash.Hash{}
		deadlines := rng.IntN(2) == 0
		for range n {
			field := randomBytes(rng)
			h.Set(field, randomBytes(rng), limits.Hash)
			if deadlines && rng.IntN(2) == 0 {
				h.SetDeadline(field, 1+rng.Int64N(1<<40))
			}
		}
		return Value{Kind: engine.KindHash, Object: h}
	}
	s := &stream.Stream{}
	for i := range n {
		pairs := [][]byte{[]byte("f"), randomBytes(rng)}
		if rng.IntN(5) == 0 {
			pairs = append(pairs, randomBytes(rng), randomBytes(rng))
		}
		_ = s.Add(stream.ID{Millis: uint64(i + 1)}, pairs, stream.DefaultLimits)
		if rng.IntN(10) == 0 {
			s.Delete(stream.ID{Millis: uint64(1 + rng.IntN(i+1))})
		}
	}
	for i := range rng.IntN(3) {
		g, _ := s.CreateGroup(fmt.Appendf(nil, "g%d", i), stream.ID{}, 0)
		for j := range 2 {
			c, _ := g.CreateConsumer(fmt.Appendf(nil, "c%d", j), 5)
			s.Deliver(g, c, 1+rng.IntN(10), false, int64(j), func(*stream.Iter) {})
		}
	}
	return Value{Kind: engine.KindStream, Object: s}
}

func TestLengths(t *testing.T) {
	for _, n := range []uint64{0, 1, 63, 64, 1<<14 - 1, 1 << 14, 1<<32 - 1, 1 << 32, math.MaxUint64} {
		r := NewReader(appendLen(nil, n), 0)
		if got := r.Len(); got != n || r.Failed() || r.More() {
			t.Errorf("%d became %d", n, got)
		}
	}
}

func TestLimitOfStrings(t *testing.T) {
	payload := AppendFooter(AppendString([]byte{typeString}, make([]byte, 5000), true))
	lim := limits
	lim.MaxString = 4999
	if _, err := Load(payload, lim); !errors.Is(err, ErrFormat) {
		t.Error("a compressed string beyond the limit is taken")
	}
	lim.MaxString++
	load(t, payload, lim)
}

// FuzzLoad checks that every accepted body gives a valid value, which can be dumped and read again.
func FuzzLoad(f *testing.F) {
	for _, d := range dumped {
		payload, _ := hex.DecodeString(d.payload)
		f.Add(payload[:len(payload)-FooterBytes])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		v, err := Load(AppendFooter(bytes.Clone(body)), limits)
		if err != nil {
			return
		}
		check(t, v)
		payload := AppendDump(nil, entry(v), format)
		load(t, payload, limits)
	})
}

// TestCompressedLengths checks strings whose lengths take as many bytes compressed as uncompressed, and others.
func TestCompressedLengths(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	shorter := 0
	for _, n := range []int{lzfFrom, 63, 64, 70, 1000, 1<<14 - 1, 1 << 14, 20_000, 70_000} {
		for _, random := range []int{0, n / 4, n / 2, n * 3 / 4, n} {
			want := make([]byte, n)
			for i := range random {
				want[i] = byte(rnd.Uint32())
			}
			b := AppendString([]byte("before"), want, true)
			r := Reader{rest: b[len("before"):], maxString: n}
			if got := r.String(); !bytes.HasPrefix(b, []byte("before")) || !bytes.Equal(got, want) || r.Failed() || len(r.rest) > 0 {
				t.Errorf("%d bytes, %d of them random, come back as %d, and %d follow", n, random, len(got), len(r.rest))
			}
			if len(b) < n {
				shorter++
			}
		}
	}
	if shorter < 30 {
		t.Errorf("%d strings were compressed", shorter)
	}
}

// FuzzCompress checks that compressed bytes decompress to the original, and that no input does harm.
func FuzzCompress(f *testing.F) {
	f.Add([]byte("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), 30)
	f.Add([]byte("limits and queues, queues and limits, limits and queues"), 50)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if len(b) >= lzfFrom {
			if c, ok := compress([]byte("x"), b); ok {
				if back, ok := decompress(c[1:], len(b)); !ok || !bytes.Equal(back, b) || len(c)-1 > len(b)-lzfSaved {
					t.Fatalf("%q became %q", b, back)
				}
			}
		}
		if n >= 0 && n < 1<<16 {
			if out, ok := decompress(b, n); ok && len(out) != n {
				t.Fatalf("%d bytes instead of %d", len(out), n)
			}
		}
	})
}

func BenchmarkDumpHash(b *testing.B) {
	h := &hash.Hash{}
	for i := range 20 {
		h.Set(fmt.Appendf(nil, "field%d", i), fmt.Appendf(nil, "value%d", i), limits.Hash)
	}
	e := entry(Value{Kind: engine.KindHash, Object: h})
	b.ReportAllocs()
	var buffer []byte
	for range b.N {
		buffer = AppendDump(buffer[:0], e, format)
	}
	b.SetBytes(int64(len(buffer)))
}

func BenchmarkLoadHash(b *testing.B) {
	payload, _ := hex.DecodeString(dumped[14].payload)
	b.ReportAllocs()
	for range b.N {
		if _, err := Load(payload, limits); err != nil {
			b.Fatal(err)
		}
	}
}

// Payloads of Redis 8.10: a hash of a template, whose fields are packed or not, as HIMPORT becomes RESTORE in its log.
func TestLater(t *testing.T) {
	const packedHash = "\x1d\x00\x0d\x0d\x00\x00\x00\x02\x00\x81a\x02\x81b\x02\xff\x0d\x0d\x00\x00\x00\x03\x00\x01\x01\x01\x01\x02\x01\xff"
	later := limits
	later.Later = true
	for _, c := range []struct {
		name, body string
		version    uint16
		sum        uint64
		lim        Limits
		ok         bool
	}{
		{"packed", packedHash, 15, 0, later, true},
		{"plain", "\x1f\x01\x02\x01a\x01b\x011\x012", 15, 0, later, true},
		{"with what a module says may be left out", "\xf3\x01\x01\x00\x00\x00\x02\x05\x00" + packedHash, 15, 0, later, true},
		{"with what a module says may not", "\xf3\x01\x00\x00\x00\x00\x02\x05\x00" + packedHash, 15, 0, later, false},
		{"fields out of order", "\x1f\x01\x02\x01b\x01a\x011\x012", 15, 0, later, false},
		{"a version too many", packedHash, 16, 0, later, false},
		{"a wrong checksum", packedHash, 15, 1, later, false},
		{"of a client", packedHash, 15, 0, limits, false},
	} {
		payload := binary.LittleEndian.AppendUint16([]byte(c.body), c.version)
		v, err := Load(binary.LittleEndian.AppendUint64(payload, c.sum), c.lim)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil {
			continue
		}
		check(t, v)
		h := v.Object.(*hash.Hash)
		if b, ok := h.Get([]byte("b"), new(packed.Scratch)); h.Len() != 2 || !ok || string(b) != "2" {
			t.Errorf("%s: %d fields, %q", c.name, h.Len(), b)
		}
	}
}
