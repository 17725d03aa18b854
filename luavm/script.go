package luavm

// A compiled script. Each body is compiled once; all VMs share the resulting prototype.

import (
	"crypto/sha1"
	"encoding/hex"
	"sync/atomic"

	"github.com/limitkv/limitkv/luavm/analysis"
	"github.com/limitkv/limitkv/luavm/syntax"
)

// chunkName is the chunk name of scripts in error texts.
const chunkName = "user_script"

// Script is a compiled script. It is immutable and may be used by any number of VMs at once.
type Script struct {
	Body  string
	SHA   string // SHA-1 of the body, 40 lowercase hexadecimal digits
	Flags Flags

	chunk *chunk
	ran   atomic.Bool
	skip  int // length of the first line of Body if it is not Lua, else 0
}

// Bytes is the memory that the script needs: its text and its compiled form.
func (s *Script) Bytes() int64 { return int64(len(s.Body)) + s.chunk.main.Bytes(s.Body) }

// SHA1Hex returns the SHA-1 of b in lowercase hexadecimal, as SCRIPT LOAD and redis.sha1hex do.
func SHA1Hex(b []byte) string { return SHA1Text(sha1.Sum(b)) }

// SHA1Text returns a SHA-1 in lowercase hexadecimal.
func SHA1Text(sum [sha1.Size]byte) string { return hex.EncodeToString(sum[:]) }

// Compile compiles a script. The text of an error is Redis's without the "ERR " in front.
func Compile(body []byte) (*Script, error) {
	s := &Script{Body: string(body), SHA: SHA1Hex(body)}
	flags, skip, err := parseShebang(s.Body)
	if err != nil {
		return nil, err
	}
	s.Flags, s.skip = flags, skip
	if s.chunk, err = compileChunk(s.Body[skip:], "@"+chunkName, knownFunctions(), true, nil, 0); err != nil {
		return nil, &CompileError{Text: "Error compiling script (new function): " + err.Error()}
	}
	return s, nil
}

// CompileError says why a body does not compile.
type CompileError struct{ Text string }

func (e *CompileError) Error() string { return e.Text }

// Analyse proves facts about the script, if it can. keys says where a command's keys are.
func (s *Script) Analyse(keys analysis.KeyFinder) analysis.Verdict {
	source := s.Body[s.skip:]
	if len(source) > analysis.SourceMax {
		return analysis.TooLong
	}
	stmts, err := syntax.Parse(source, chunkName)
	if err != nil {
		return analysis.Verdict{} // it has compiled
	}
	return analysis.Chunk(stmts, keys)
}
