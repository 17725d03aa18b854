package packed

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Redis 8.0.6's dump of a list of these elements.
func TestBytesAreRedis(t *testing.T) {
	var lp []byte
	for _, v := range []string{"", "a", "0", "127", "128", "-1", "4095", "-4096", "4096", "-32768", "32768", "-8388608",
		"8388608", "-2147483648", "2147483648", "-9223372036854775808", "9223372036854775807",
		"9223372036854775808", "007", "-0", strings.Repeat("x", 63), strings.Repeat("x", 64)} {
		lp = Append(lp, String([]byte(v)))
	}
	want := "fa0000001600800181610200017f01c08002dfff02cfff02d00002f1001003f1008003f200800004f200008004f3000080" +
		"0005f30000008005f4000000800000000009f4000000000000008009f4ffffffffffffff7f0993393232333337323033363835" +
		"34373735383038148330303704822d3003bf" + strings.Repeat("78", 63) + "40e040" + strings.Repeat("78", 64) + "42ff"
	if got := hex.EncodeToString(lp); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	long := Append(nil, String(bytes.Repeat([]byte("x"), 5000)))
	if got := hex.EncodeToString(long[:11]) + hex.EncodeToString(long[len(long)-3:]); got != "961300000100f088130000"+"278dff" {
		t.Errorf("5000 bytes: %s", got)
	}
}

func TestParseInt(t *testing.T) {
	for s, want := range map[string]bool{
		"0": true, "9": true, "-1": true, "10": true, "9223372036854775807": true, "-9223372036854775808": true,
		"": false, "-": false, "-0": false, "00": false, "01": false, "+1": false, " 1": false, "1 ": false, "a": false,
		"1.0": false, "9223372036854775808": false, "-9223372036854775809": false, "18446744073709551616": false,
		"99999999999999999999": false, "-99999999999999999999": false,
	} {
		n, ok := ParseInt([]byte(s))
		if ok != want || ok && strconv.FormatInt(n, 10) != s {
			t.Errorf("%q: %d %v, want %v", s, n, ok, want)
		}
	}
}

func randomElement(rnd *rand.Rand) []byte {
	switch rnd.IntN(6) {
	case 0:
		return strconv.AppendInt(nil, rnd.Int64()>>rnd.IntN(64), 10)
	case 1:
		return strconv.AppendInt(nil, -(rnd.Int64() >> rnd.IntN(64)), 10)
	case 2: // around the limits of the encodings
		limits := []int{0, 62, 63, 64, 126, 127, 128, 4094, 4095, 4096, 16378, 16379, 16380, 16381, 16382}
		return bytes.Repeat([]byte{'z'}, limits[rnd.IntN(len(limits))])
	default:
		return bytes.Repeat([]byte{byte('a' + rnd.IntN(3))}, rnd.IntN(6))
	}
}

func TestAgainstModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	var lp []byte
	var model [][]byte
	did := map[string]int{}
	for step := range 8000 {
		at := 0
		if len(model) > 0 {
			at = rnd.IntN(len(model))
		}
		switch op := rnd.IntN(9); {
		case op == 8 && len(model) > 0:
			// Cut in two and joined again.
			p := Seek(lp, at)
			a, b := Slice(lp, First(lp), p, at), Slice(lp, p, End(lp), len(model)-at)
			if Check(a) != nil || Check(b) != nil || Count(a) != at {
				t.Fatalf("step %d: cut at %d: %v, %v", step, at, Check(a), Check(b))
			}
			lp = Compact(Concat(a, b))
			did["cut"]++
			asked, kept := 0, [][]byte(nil)
			part := Filter(lp, func(q int) bool {
				if q != Seek(lp, asked) {
					t.Fatalf("step %d: asked for the element at %d, want %d", step, q, Seek(lp, asked))
				}
				asked++
				if asked%3 == 0 {
					kept = append(kept, model[asked-1])
				}
				return asked%3 == 0
			})
			if err := Check(part); err != nil {
				t.Fatalf("step %d: a third of it: %v", step, err)
			}
			compare(t, step, part, kept)
		case op == 0 && len(model) > 0:
			n := 1 + rnd.IntN(4)
			lp = Delete(lp, Seek(lp, at), n)
			model = slices.Delete(model, at, min(at+n, len(model)))
			did["delete"]++
		case op == 1 && len(model) > 0:
			v := randomElement(rnd)
			lp = Replace(lp, Seek(lp, at-len(model)), String(v))
			model[at] = v
			did["replace"]++
		case op == 2 && len(model) > 0:
			v, w := randomElement(rnd), rnd.Int64()>>rnd.IntN(64)
			lp = Insert(lp, Seek(lp, at), String(v), Number(w))
			model = slices.Insert(model, at, v, strconv.AppendInt(nil, w, 10))
			did["insert"]++
		case op == 3 && len(model) > 30:
			lp, model = Delete(lp, First(lp), len(model)), nil
		default:
			v := randomElement(rnd)
			lp = Append(lp, String(v))
			model = append(model, v)
			did["append"]++
		}
		if err := Check(lp); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		compare(t, step, lp, model)
	}
	for _, op := range []string{"append", "insert", "replace", "delete", "cut"} {
		if did[op] < 100 {
			t.Errorf("only %d × %s: the test did no work", did[op], op)
		}
	}
}

func compare(t *testing.T, step int, lp []byte, model [][]byte) {
	t.Helper()
	if Count(lp) != len(model) {
		t.Fatalf("step %d: %d elements, want %d", step, Count(lp), len(model))
	}
	var s Scratch
	size, i, before := EmptyBytes, 0, -1
	for p := First(lp); p < End(lp); p = Next(lp, p) {
		want := model[i]
		if got := Get(lp, p, &s); !bytes.Equal(got, want) || !Equal(lp, p, want) ||
			string(AppendTo([]byte("+"), lp, p)) != "+"+string(want) {
			t.Fatalf("step %d: element %d is %q, want %q", step, i, got, want)
		}
		if Prev(lp, p) != before || Seek(lp, i) != p || Seek(lp, i-len(model)) != p {
			t.Fatalf("step %d: element %d at %d: before it %d, found at %d and %d", step, i, p, Prev(lp, p), Seek(lp, i), Seek(lp, i-len(model)))
		}
		for skip := range 3 {
			found := Find(lp, First(lp), want, skip)
			first := -1
			for j := 0; j < len(model) && first < 0; j += skip + 1 {
				if bytes.Equal(model[j], want) {
					first = j
				}
			}
			if found != Seek(lp, first) && first >= 0 || first < 0 && found != -1 {
				if len(model)%(skip+1) == 0 {
					t.Fatalf("step %d: %q found at %d by every %d, want %d", step, want, found, skip+1, Seek(lp, first))
				}
			}
			if len(model)%(skip+2) != 0 {
				break // Find may only skip elements that exist
			}
		}
		item := String(want)
		size += item.Size()
		before = p
		i++
	}
	if i != len(model) || Bytes(lp) != size || Last(lp) != before || Seek(lp, i) != -1 || Seek(lp, -i-1) != -1 {
		t.Fatalf("step %d: %d elements of %d, %d bytes, want %d", step, i, len(model), Bytes(lp), size)
	}
}

func TestMoreElementsThanTheHeaderCounts(t *testing.T) {
	var lp []byte
	for i := range 65_534 {
		lp = Append(lp, Number(int64(i%100)))
	}
	for n := 65_534; n < 65_540; n++ {
		if got := Count(lp); got != n || Check(lp) != nil || Seek(lp, n) != -1 || Seek(lp, n-1) != Last(lp) || Seek(lp, -n) != First(lp) {
			t.Fatalf("%d elements counted, want %d", got, n)
		}
		lp = Append(lp, Number(1))
	}
}

// FuzzCheck: what Check accepts can be walked both ways within its bytes.
func FuzzCheck(f *testing.F) {
	f.Add(Append(nil, String([]byte("abc")), Number(-70000), String(bytes.Repeat([]byte("x"), 70))))
	f.Add(Append(nil, Number(1)))
	f.Fuzz(func(t *testing.T, lp []byte) {
		if Check(lp) != nil {
			return
		}
		var s Scratch
		n := 0
		for p := First(lp); p < End(lp); p = Next(lp, p) {
			Get(lp, p, &s)
			n++
		}
		for p := Last(lp); p >= 0; p = Prev(lp, p) {
			n--
		}
		if n != 0 {
			t.Errorf("%d elements more forwards than backwards", n)
		}
		if lp != nil && Find(lp, First(lp), []byte("nowhere"), 0) >= 0 {
			t.Skip()
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	v := []byte("value")
	for b.Loop() {
		var lp []byte
		for range 20 {
			lp = Append(lp, String(v))
		}
	}
}

func TestTwice(t *testing.T) {
	for _, n := range []int{0, 1, 2, twicePairsMax - 1, twicePairsMax, twicePairsMax + 1, 500} {
		for stride := 1; stride <= 3; stride++ {
			build := func(double int) (lp []byte) {
				for i := range n {
					name := i
					if i == n-1 && double >= 0 {
						name = double
					}
					if name%2 == 0 {
						lp = Append(lp, Number(int64(name)))
					} else {
						lp = Append(lp, String(fmt.Appendf(nil, "name %d", name)))
					}
					for range stride - 1 {
						lp = Append(lp, Number(7)) // the same value can be there twice
					}
				}
				return lp
			}
			if Twice(build(-1), stride) {
				t.Errorf("%d, stride %d: an element is there twice", n, stride)
			}
			for double := range n - 1 {
				if !Twice(build(double), stride) {
					t.Errorf("%d, stride %d: element %d is not there twice", n, stride, double)
				}
			}
		}
	}
}

func BenchmarkTwice(b *testing.B) {
	for _, n := range []int{5, twicePairsMax, twicePairsMax + 1} {
		var lp []byte
		for i := range n {
			lp = Append(lp, String(fmt.Appendf(nil, "field%d", i)), String([]byte("value")))
		}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				Twice(lp, 2)
			}
		})
	}
}
