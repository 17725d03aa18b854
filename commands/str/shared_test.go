package str_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

// TestLargeRepliesStay makes a client read large values late, while others change them: it gets the old values.
func TestLargeRepliesStay(t *testing.T) {
	s := livetest.Start(t)
	reader, writer := s.Client(), s.Client()
	const n = 6 << 20
	value := strings.Repeat("v", n)
	asked := 0
	for name, change := range map[string][]any{
		"SETRANGE": {"SETRANGE", "k", "5", "changed"},
		"SETBIT":   {"SETBIT", "k", "100", "0"},
		"APPEND":   {"APPEND", "k", "more"},
		"SET":      {"SET", "k", strings.Repeat("w", n)},
		"DEL":      {"DEL", "k"},
	} {
		for _, ask := range [][]any{{"GET", "k"}, {"GETRANGE", "k", 0, -1}, {"MGET", "k", "k"}, {"GETEX", "k"}, {"SET", "k", value, "GET"}} {
			writer.Do("SET", "k", value)
			writer.Do("APPEND", "k", "end") // so that there is room behind it
			asked++
			run := func(mark string) {
				reader.Do("MULTI")
				reader.Do(ask...)
				reader.Do("SET", "mark", mark)
				reader.Send("EXEC")
			}
			run("0")
			want := reader.Read()
			writer.Do("SET", "k", value)
			writer.Do("APPEND", "k", "end")
			run(fmt.Sprint(asked))
			for deadline := time.Now().Add(10 * time.Second); !strings.Contains(writer.Do("GET", "mark"), fmt.Sprint(asked)); {
				if time.Now().After(deadline) {
					t.Fatal("EXEC has not run")
				}
			}
			writer.Do(change...)
			writer.Do("SETRANGE", "k", 0, "x")
			if got := reader.Read(); got != want || len(got) < n {
				t.Errorf("%s, %v: %d bytes that are not the %d that there were", name, ask[0], len(got), len(want))
			}
		}
	}
}
