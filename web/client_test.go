package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
)

// answering makes a site whose server answers every request with a text.
func answering(t testing.TB, text string) *Site {
	return New(Options{
		Dial: func(net.Addr) net.Conn {
			here, there := net.Pipe()
			go func() {
				defer there.Close()
				b := make([]byte, 4096)
				if _, err := there.Read(b); err == nil {
					_, _ = there.Write([]byte(text))
				}
			}()
			return here
		},
		Open: func() bool { return true },
		Logf: func(format string, args ...any) { t.Logf(format, args...) },
	})
}

func (s *Site) reply(t testing.TB) (any, error) {
	r, err := http.NewRequestWithContext(t.Context(), "GET", "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := s.dial(t.Context(), r)
	defer c.close()
	return c.do([]string{"ANY"})
}

func TestReplies(t *testing.T) {
	for text, want := range map[string]string{
		"+OK\r\n":                             `"OK"`,
		"-ERR no\r\n":                         `{"error":"ERR no"}`,
		"!6\r\nERR no\r\n":                    `{"error":"ERR no"}`,
		":-7\r\n":                             `-7`,
		":9007199254740993\r\n":               `"9007199254740993"`,
		"_\r\n":                               `null`,
		"$-1\r\n":                             `null`,
		"*-1\r\n":                             `null`,
		"#t\r\n":                              `true`,
		",1.5\r\n":                            `1.5`,
		",inf\r\n":                            `"+Inf"`,
		",nan\r\n":                            `"NaN"`,
		"(123456789012345678901234567890\r\n": `"123456789012345678901234567890"`,
		"$3\r\na\r\n\r\n":                     `"a\r\n"`,
		"$0\r\n\r\n":                          `""`,
		"$1\r\n\xff\r\n":                      `{"base64":"/w=="}`,
		"=8\r\ntxt:text\r\n":                  `"text"`,
		"*2\r\n:1\r\n*1\r\n_\r\n":             `[1,[null]]`,
		"~1\r\n:1\r\n":                        `[1]`,
		"%2\r\n$1\r\na\r\n:1\r\n:2\r\n#f\r\n": `{"2":false,"a":1}`,
		"|1\r\n+a\r\n+b\r\n:3\r\n":            `3`,
		">2\r\n+message\r\n+text\r\n:4\r\n":   `4`,
	} {
		v, err := answering(t, text).reply(t)
		got, _ := json.Marshal(plain(v))
		if err != nil || string(got) != want {
			t.Errorf("%q: %s %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "\r\n", "\n", "+OK", "$x\r\n", "$5\r\nabc", "?\r\n", "*1\r\n", ":x\r\n", ",x\r\n", "$99999999999\r\n",
		strings.Repeat("*1\r\n", 100) + ":1\r\n", strings.Repeat("|0\r\n", 10_000)} {
		if v, err := answering(t, text).reply(t); err == nil {
			t.Errorf("%.50q: %v", text, v)
		}
	}
}

func TestTooMuch(t *testing.T) {
	long := func(n int) string { return fmt.Sprintf("$%d\r\n%s\r\n", n, strings.Repeat("x", n)) }
	for _, text := range []string{long(40_000_000), "*3\r\n" + long(16_000_000) + long(20_000_000),
		"+" + strings.Repeat("x", repliesBytesMax+10) + "\r\n"} {
		if v, err := answering(t, text).reply(t); !errors.Is(err, errTooMuch) {
			t.Errorf("%.20q: %.20v %v", text, v, err)
		}
	}
}

func FuzzReply(f *testing.F) {
	f.Add("*2\r\n:1\r\n%1\r\n+a\r\n$1\r\nb\r\n")
	f.Add("|1\r\n+a\r\n+b\r\n>1\r\n_\r\n,inf\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		v, err := answering(t, text).reply(t)
		if err != nil {
			return
		}
		if _, err := json.Marshal(plain(v)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}
