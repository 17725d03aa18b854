package analysis

// Where a command's keys are among arguments of which only some are known. The caller has the table of commands; this
// file has the shape of the question and, for specs as COMMAND INFO has them, the answer.

import (
	"strconv"
)

// Arg is an argument of a redis.call as far as it is known. Index 0 is the command's name.
type Arg struct {
	Const bool   // Value is what it always is
	Value string //
	Rest  bool   // only the last: any number of unknown arguments from here on, possibly none
}

// Keys says which arguments may be keys. More than there really are is safe, fewer is not.
type Keys struct {
	At   []int // indexes of arguments; those out of range are ignored
	Rest bool  // the arguments behind a last one marked Rest may be keys
}

// KeyFinder says which arguments of the command may be keys. The name is in lower case and is also args[0].
// It reports false where that cannot be told, for unknown commands, and for commands that touch more than their keys
// (KEYS, SCAN, FLUSHALL, RANDOMKEY; SORT with BY or GET; SELECT and others that concern another database).
type KeyFinder func(name string, args []Arg) (Keys, bool)

// Spec is one key spec of a command: where to begin, and how to find the keys from there.
type Spec struct {
	// Begin: at Index.
	Index int
	// A range from there: Last counts from the beginning, or from the end if negative; every Step-th argument; with
	// Limit above 1 and Last -1 only the first 1/Limit of what is left.
	Last  int
	Step  int
	Limit int
	// Or as many as the argument at NumAt says, from FirstAt on, both counted from the beginning.
	Numbered       bool
	NumAt, FirstAt int
}

// Find appends the arguments that may be keys by this spec. It reports false if that cannot be told.
func (s Spec) Find(args []Arg, keys *Keys) bool {
	n := len(args) // of those known to be there
	rest := n > 0 && args[n-1].Rest
	if rest {
		n--
	}
	begin := s.Index
	step := max(s.Step, 1)
	if s.Numbered {
		first, end, open := begin+s.FirstAt, n, true
		if at := begin + s.NumAt; at < n && args[at].Const {
			if count, err := strconv.Atoi(args[at].Value); err == nil {
				if count <= 0 || count > 1<<20 {
					return true // an error, or none
				}
				end, open = first+(count-1)*step+1, first+(count-1)*step >= n
			}
		}
		for i := first; i < end && i < n; i += step {
			keys.At = append(keys.At, i)
		}
		keys.Rest = keys.Rest || open && rest
		return true
	}
	last := begin + s.Last
	if s.Last < 0 {
		last = n + s.Last
		if rest {
			last = n // there may be so many more that all of these count
		}
		if s.Limit > 1 && !rest {
			last = begin + (n-begin)/s.Limit - 1
		}
	}
	for i := begin; i <= last && i < n; i += step {
		keys.At = append(keys.At, i)
	}
	keys.Rest = keys.Rest || last >= n && rest
	return true
}
