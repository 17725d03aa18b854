package journal

// Tests of reading: whole units are returned, and kinds of damage are distinguished.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// read reads a file to its end, as lines "db: args".
func read(text []byte, stopAt int64, step int) (units []string, r *Reader, err error) {
	r = NewReader("f", bytes.NewReader(text), 0, int64(len(text)), stopAt)
	r.step = step
	for {
		u, err := r.Next()
		if err == io.EOF {
			return units, r, nil
		} else if err != nil {
			return units, r, err
		}
		var lines []string
		for _, c := range u.Commands {
			lines = append(lines, fmt.Sprintf("%d: %s", c.DB, bytes.Join(c.Args, []byte(" "))))
		}
		units = append(units, strings.Join(lines, "; "))
	}
}

func join(parts ...any) []byte {
	var out []byte
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			out = append(out, p...)
		case []byte:
			out = append(out, p...)
		}
	}
	return out
}

func TestReadPlain(t *testing.T) {
	set, multi, exec := cmd("SET", "k", "v"), cmd("multi"), cmd("Exec")
	big := strings.Repeat("x", 3<<20)
	for name, c := range map[string]struct {
		text []byte
		want []string
	}{
		"nothing":      {nil, nil},
		"commands":     {join(set, cmd("select", "7"), set), []string{"0: SET k v", "7: SET k v"}},
		"transaction":  {join(multi, cmd("SELECT", "3"), set, set, exec, set), []string{"3: SET k v; 3: SET k v", "3: SET k v"}},
		"comments":     {join("#TS:5\r\n", set, "# x\n", multi, "#TS:6\r\n", set, exec, "#TS:7\r\n"), []string{"0: SET k v", "0: SET k v"}},
		"empty values": {join(cmd("SET", "", ""), multi, exec, exec), []string{"0: SET  "}},
		"big values":   {join(set, cmd("SET", "k", big), set), []string{"0: SET k v", "0: SET k " + big, "0: SET k v"}},
		"no database":  {join(cmd("SELECT", "1"), cmd("SELECT", "x"), set, cmd("SELECT", "-1"), set), []string{"1: SELECT x", "1: SET k v", "1: SELECT -1", "1: SET k v"}},
		"a word more":  {join(cmd("MULTI", "x"), cmd("SELECT")), []string{"0: MULTI x", "0: SELECT"}},
	} {
		for _, step := range []int{1, 100, chunk} {
			if got, _, err := read(c.text, 0, step); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s in steps of %d: %.200q, %v", name, step, got, err)
			}
		}
	}
}

// TestReadPlainDamage checks that files without marks are judged as in Redis: a missing end is torn, other damage is
// not.
func TestReadPlainDamage(t *testing.T) {
	set := cmd("SET", "k", "v")
	for name, c := range map[string]struct {
		text []byte
		good int64
		torn bool
	}{
		"half a command":     {join(set, set[:20]), int64(len(set)), true},
		"half an argument":   {join(set, "*1\r\n$100\r\nabc"), int64(len(set)), true},
		"half a transaction": {join(set, cmd("MULTI"), set), int64(len(set)), true},
		"half a comment":     {join(set, "#TS:12"), int64(len(set)), true},
		"zeros":              {join(set, make([]byte, 5000)), int64(len(set)), true},
		"zeros, then more":   {join(set, make([]byte, 5000), set), int64(len(set)), false},
		"no command":         {join(set, "!!!", set), int64(len(set)), false},
		"no arguments":       {join(set, "*0\r\n", set), int64(len(set)), false},
		"no length":          {join(set, "*1\r\n$x\r\n", set), int64(len(set)), false},
		"minus":              {join(set, "*1\r\n$-1\r\n", set), int64(len(set)), false},
		"a wrong length":     {join(set, "*1\r\n$3\r\nabcd\r\n", set), int64(len(set)), false},
		"a wrong end":        {join(set, "*1\r\n$3\r\nabc\n\n", set), int64(len(set)), false},
		"a long comment":     {join(set, "#", strings.Repeat("x", 2000), "\r\n", set), int64(len(set)), false},
		"a huge length":      {join(set, "*1\r\n$999999999999999999999\r\n", set), int64(len(set)), false},
	} {
		for _, step := range []int{1, 100, chunk} {
			got, _, err := read(c.text, 0, step)
			var d *Damage
			if !errors.As(err, &d) || d.Good != c.good || d.Torn != c.torn || len(got) != 1 {
				t.Errorf("%s in steps of %d: %q, %v", name, step, got, err)
			}
		}
	}
}

// marked is a file with marks: groups of several batches, each synced up to the group before.
func marked(groups int, closed bool) (text []byte, ends []int, units []string) {
	synced, lsn, n := 0, LSN(1000), 0
	put := func(kind byte, body []byte) {
		m := mark{kind: kind, length: int64(len(body)), lsn: lsn, micros: 5e15, synced: int64(synced), crc: crcOf(body)}
		line := make([]byte, markSize)
		m.put(line, int64(len(text)))
		text = join(text, line, body)
	}
	put(markClosed, nil)
	for g := range groups {
		synced = len(text)
		ends = append(ends, synced)
		var body []byte
		for range 3 {
			n++
			body = join(body, cmd("MULTI"), cmd("SELECT", "2"), cmd("SET", fmt.Sprint(n), strings.Repeat("v", 40*g)), cmd("DEL", "x"), cmd("EXEC"))
			units = append(units, fmt.Sprintf("2: SET %d %s; 2: DEL x", n, strings.Repeat("v", 40*g)))
		}
		lsn += LSN(len(body))
		put(markGroup, body)
	}
	ends = append(ends, len(text))
	if closed {
		synced = len(text)
		put(markClosed, nil)
	}
	return text, ends, units
}

func TestReadMarked(t *testing.T) {
	text, _, want := marked(8, true)
	for _, step := range []int{1, 100, chunk} {
		got, r, err := read(text, 0, step)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("in steps of %d: %q, %v", step, got, err)
		}
		f := r.Facts()
		if f.Units != 24 || f.Commands != 48 || f.Marks != 10 || !f.Closed || f.Micros != 5e15 || f.First <= 1000 || f.Last <= f.First || r.Good() != int64(len(text)) {
			t.Errorf("facts %+v", f)
		}
	}
}

// TestTornAnywhere cuts a file with marks at every byte: whole groups remain.
func TestTornAnywhere(t *testing.T) {
	text, ends, want := marked(5, false)
	for n := range text {
		got, r, err := read(text[:n], 0, 100)
		whole := 0
		for whole < len(ends) && ends[whole] <= n {
			whole++
		}
		good := 0
		if whole > 0 {
			good = ends[whole-1]
		}
		if !slices.Equal(got, want[:3*max(whole-1, 0)]) {
			t.Fatalf("cut at %d: %q", n, got)
		}
		var d *Damage
		if n == good && err == nil {
			continue
		}
		if !errors.As(err, &d) || !d.Torn || d.Good != int64(good) || r.Good() != d.Good {
			t.Fatalf("cut at %d, whole up to %d: %v", n, good, err)
		}
	}
}

// TestTornComment checks a time stamp whose end was lost with the bytes after it. It is torn, although a later line's
// end, with something like a mark after it, seems to end the line.
func TestTornComment(t *testing.T) {
	for room := 1; room <= 8; room++ {
		text, _, want := marked(5, false)
		for (len(text)+room)%sector != 0 { // a comment line pads the file
			text = append(text, '#')
			if (len(text)+1+room)%sector == 0 {
				text = append(text, '\n')
			}
		}
		end := len(text)
		text = append(text, "#TS:1700"[:room]...)
		text = append(text, make([]byte, sector)...)
		text = append(text, "value\r\n#LKV1 g \r\n*1\r\n$4\r\nEXEC\r\n"...)
		for _, step := range []int{100, chunk} {
			got, _, err := read(text, 0, step)
			var d *Damage
			if !errors.As(err, &d) || !d.Torn || d.Good != int64(end) || !slices.Equal(got, want) {
				t.Errorf("%d bytes of a time stamp: %d units, %v, want it torn at %d", room, len(got), err, end)
			}
		}
	}
}

// TestHolesAnywhere removes each run of sectors from the last group, which no mark says was synced, and from an earlier
// one.
func TestHolesAnywhere(t *testing.T) {
	text, ends, want := marked(40, false)
	last, holes := ends[len(ends)-2], 0
	for from := last/sector*sector + sector; from < len(text); from += sector {
		damaged := bytes.Clone(text)
		clear(damaged[from:min(from+sector, len(text))])
		got, _, err := read(damaged, 0, 100)
		var d *Damage
		if !errors.As(err, &d) || !d.Torn || d.Good != int64(last) || !slices.Equal(got, want[:len(want)-3]) {
			t.Fatalf("hole at %d of %d: %v", from, len(text), err)
		}
		holes++
	}
	damaged := bytes.Clone(text)
	clear(damaged[sector*8 : sector*9])
	if _, _, err := read(damaged, 0, 100); err == nil || err.(*Damage).Torn {
		t.Errorf("a sector that had been safe is gone: %v", err)
	}
	if holes < 5 {
		t.Errorf("only %d holes", holes)
	}
}

// TestRotAnywhere changes every byte of a file in turn: the reader never returns anything that was not written, and
// never takes rot for a torn write.
func TestRotAnywhere(t *testing.T) {
	for _, closed := range []bool{true, false} {
		text, ends, want := marked(6, closed)
		for i := range text {
			for _, flip := range []byte{1, 0x20, 0x80, 0xff} {
				damaged := bytes.Clone(text)
				damaged[i] ^= flip
				got, _, err := read(damaged, 0, 100)
				if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
					t.Fatalf("byte %d: %q came out", i, got)
				}
				var d *Damage
				if err == nil {
					// A mark that no longer looks like one, and covered nothing, or the end of the file.
					if i >= markSize && i < ends[len(ends)-2] || len(got) != len(want) {
						t.Fatalf("byte %d ^ %d of %d: not found, %d of %d units", i, flip, len(text), len(got), len(want))
					}
				} else if !errors.As(err, &d) || d.Good > int64(i) {
					t.Fatalf("byte %d: %v", i, err)
				} else if d.Torn && i < ends[len(ends)-2] {
					t.Fatalf("byte %d ^ %d passes for a torn write: %v", i, flip, err)
				}
			}
		}
	}
}

func TestStopAtTime(t *testing.T) {
	set := cmd("SET", "k", "v")
	text := join("#TS:10\r\n", set, "#TS:11\r\n", set, "#TS:12\r\n", cmd("MULTI"), set, "#TS:13\r\n", set, cmd("EXEC"), "#TS:14\r\n")
	for stop, n := range map[int64]int{9: 0, 10: 1, 11: 2, 12: 2, 13: 3, 14: 3, 0: 3} {
		got, r, err := read(text, stop, 10)
		if err != nil || len(got) != n || r.Stopped() != (stop > 0 && stop < 14) {
			t.Errorf("stopped at %d: %q, %v", stop, got, err)
		}
	}
	if _, _, err := read(join("#TS:x\r\n", set), 5, 10); err == nil {
		t.Error("a time stamp that is none")
	}
}

func TestNewerVersion(t *testing.T) {
	text := join(cmd("SET", "k", "v"), "#LKV2 whatever comes\r\n")
	_, _, err := read(text, 0, chunk)
	var d *Damage
	if !errors.As(err, &d) || d.Torn || !strings.Contains(d.Reason, "newer version") {
		t.Error(err)
	}
}

// TestReaderMemory checks that a rotten length allocates no memory.
func TestReaderMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, text := range []string{"*1000000000\r\n$3\r\nSET\r\n", "*1\r\n$99999999999\r\nx"} {
		if _, _, err := read([]byte(text), 0, chunk); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
}

// FuzzReader checks that any bytes give units or an error, and the same ones whatever the size of the reader's steps.
func FuzzReader(f *testing.F) {
	text, _, _ := marked(3, true)
	f.Add(text, 7)
	f.Add(text[:len(text)-100], 100)
	f.Add(join(cmd("MULTI"), "#TS:5\r\n", cmd("SET", "a", "b"), cmd("EXEC")), 1)
	f.Fuzz(func(t *testing.T, text []byte, step int) {
		step = 1 + (step&0xfff)%4096
		a, ra, errA := read(text, 0, step)
		b, rb, errB := read(text, 0, chunk)
		if !slices.Equal(a, b) || fmt.Sprint(errA) != fmt.Sprint(errB) || ra.Facts() != rb.Facts() || ra.Good() != rb.Good() {
			t.Fatalf("in steps of %d: %q, %v\nat once: %q, %v", step, a, errA, b, errB)
		}
		var d *Damage
		if errors.As(errA, &d) {
			if d.Good < 0 || d.Good > d.Size {
				t.Fatalf("%+v", d)
			}
			again, _, err := read(text[:d.Good], 0, step)
			if err != nil || !slices.Equal(again, a) {
				t.Fatalf("cut where it is good: %q, %v; before: %q, %v", again, err, a, errA)
			}
		}
	})
}

func BenchmarkReader(b *testing.B) {
	for _, c := range []struct {
		name string
		size int
	}{{"60-bytes", 13}, {"1-KiB", 1024}} {
		var groups bytes.Buffer
		w, _ := NewCommandWriter(&groups, 1, 1, true, false)
		one := cmd("SET", "key:000000000042", strings.Repeat("v", c.size))
		for groups.Len() < 64<<20 {
			_ = w.Append(one)
		}
		_ = w.Flush()
		var plain bytes.Buffer
		for plain.Len() < 64<<20 {
			plain.Write(one)
		}
		for name, text := range map[string][]byte{"marks": groups.Bytes(), "plain": plain.Bytes()} {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					r := NewReader("f", bytes.NewReader(text), 0, int64(len(text)), 0)
					for {
						if _, err := r.Next(); err == io.EOF {
							break
						} else if err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}
