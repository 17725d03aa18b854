// Redis's results for lines, found with redis-server 8.0.6 by inline commands and lines of its configuration.
package words

import (
	"fmt"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	for line, want := range map[string]string{
		"":                      "",
		" \t\v\f ":              "",
		"a b":                   `"a" "b"`,
		"  a\tb\r\nc ":          `"a" "b" "c"`,
		"a\vb\fc":               `"a\vb\fc"`,
		"a \vb":                 `"a" "b"`,
		`""`:                    `""`,
		`a"b c"`:                `"ab c"`,
		`'a b' "c d"`:           `"a b" "c d"`,
		`"a"` + "\v" + `b`:      `"a" "b"`,
		`"\n\r\t\b\a\q\\\""`:    `"\n\r\t\b\aq\\\""`,
		`"\x41\x4g\xg\x4"`:      `"Ax4gxgx4"`,
		`"\xfF"`:                `"\xff"`,
		`'\n\'\x41'`:            `"\\n'\\x41"`,
		`"a`:                    "-",
		`'a`:                    "-",
		`"a\`:                   "-",
		`"a\"`:                  "-",
		`"a"b`:                  "-",
		`'a'"b"`:                "-",
		`a'b`:                   "-",
		`x "a"b`:                "-",
		strings.Repeat("a ", 3): `"a" "a" "a"`,
	} {
		words, ok := Split(line)
		var parts []string
		for _, w := range words {
			parts = append(parts, fmt.Sprintf("%q", w))
		}
		got := strings.Join(parts, " ")
		if !ok {
			got = "-"
		}
		if got != want {
			t.Errorf("%q is %s, not %s", line, got, want)
		}
		if strings.ContainsAny(line, `"'`) {
			continue
		}
		parts = nil
		for _, w := range Plain(nil, []byte(line)) {
			parts = append(parts, fmt.Sprintf("%q", w))
		}
		if got := strings.Join(parts, " "); got != want {
			t.Errorf("%q, which is plain, is %s, not %s", line, got, want)
		}
	}
}
