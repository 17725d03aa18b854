// The words of a command line: redis-cli's quoting, and the few shorthands that keep long commands readable.

package recorded

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/conformance/peer"
)

// argumentsMax bounds what one line may expand to, so that a typing error does not fill the memory.
const argumentsMax = 1 << 20

// bytesMax bounds one repeated argument.
const bytesMax = 64 << 20

var (
	span   = regexp.MustCompile(`^\{(-?\d+)\.\.(-?\d+)(?::(.*))?\}$`)
	script = regexp.MustCompile(`^<(sha:)?([a-z0-9_/]+\.lua)$`)
)

// Split reads the words of a line, with all shorthands but the scripts.
func Split(s string) ([]string, error) { return (&File{}).split(s) }

// split reads the words of a line.
func (f *File) split(s string) ([]string, error) {
	var args []string
	for i := 0; ; {
		for i < len(s) && s[i] == ' ' {
			i++
		}
		if i == len(s) {
			return args, nil
		}
		if s[i] == '"' || s[i] == '\'' {
			word, next, err := quotedWord(s, i)
			if err != nil {
				return nil, err
			}
			if next < len(s) && s[next] == '*' {
				if word, next, err = repeated(word, s, next); err != nil {
					return nil, err
				}
			}
			if next < len(s) && s[next] != ' ' {
				return nil, fmt.Errorf("a closing quote must be followed by a space: %s", s[i:])
			}
			args = append(args, word)
			i = next
			continue
		}
		start := i
		for i < len(s) && s[i] != ' ' {
			i++
		}
		words, err := f.expand(s[start:i])
		if err != nil {
			return nil, err
		}
		if args = append(args, words...); len(args) > argumentsMax {
			return nil, fmt.Errorf("more than %d arguments", argumentsMax)
		}
	}
}

// quotedWord reads the quoted word that begins at i and says where it ends.
func quotedWord(s string, i int) (word string, end int, err error) {
	quote := s[i]
	j := i + 1
	for j < len(s) && s[j] != quote {
		if s[j] == '\\' {
			j++
		}
		j++
	}
	if j >= len(s) {
		return "", 0, fmt.Errorf("unbalanced quotes at %s", s[i:])
	}
	word = s[i+1 : j]
	if quote == '\'' {
		return strings.ReplaceAll(word, `\'`, `'`), j + 1, nil
	}
	word, err = peer.Unescape(word)
	return word, j + 1, err
}

// repeated reads the number behind "word"*, and says where it ends.
func repeated(word, s string, i int) (string, int, error) {
	end := i + 1
	for end < len(s) && s[end] != ' ' {
		end++
	}
	n, err := strconv.Atoi(s[i+1 : end])
	if err != nil || n < 0 || n*len(word) > bytesMax {
		return "", 0, fmt.Errorf("bad repetition %s", s[i:end])
	}
	return strings.Repeat(word, n), end, nil
}

func (f *File) expand(word string) ([]string, error) {
	if m := span.FindStringSubmatch(word); m != nil {
		from, _ := strconv.Atoi(m[1])
		to, _ := strconv.Atoi(m[2])
		if to-from >= argumentsMax {
			return nil, fmt.Errorf("range %s is too long", word)
		}
		form := m[3]
		if form == "" {
			form = "%d"
		}
		var out []string
		for n := from; n <= to; n++ {
			out = append(out, strings.Split(strings.ReplaceAll(form, "%d", strconv.Itoa(n)), ",")...)
		}
		return out, nil
	}
	if m := script.FindStringSubmatch(word); m != nil {
		b, err := os.ReadFile(filepath.Join(f.Scripts, filepath.FromSlash(m[2])))
		if err != nil {
			return nil, err
		}
		if m[1] != "" {
			sum := sha1.Sum(b)
			return []string{hex.EncodeToString(sum[:])}, nil
		}
		return []string{string(b)}, nil
	}
	return []string{word}, nil
}
