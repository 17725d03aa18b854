package analysis

// Finding a command's keys among arguments of which only some are known. The caller has the table of commands. This
// file has the types of the question, and the answer for key specs in the form of COMMAND INFO.

import (
	"strconv"
)

// Arg is what is known about an argument of a redis.call. Index 0 is the command's name.
type Arg struct {
	Const bool   // the argument is always Value
	Value string //
	Rest  bool   // only the last: any number of unknown arguments from here on, possibly none
}

// Keys says which arguments may be keys. Too many are safe, too few are not.
type Keys struct {
	At   []int // indexes of arguments; those out of range are ignored
	Rest bool  // the arguments behind a last one marked Rest may be keys
}

// KeyFinder says which arguments of the command may be keys. The name is in lower case and is also args[0].
// It reports false if it cannot tell, for unknown commands, and for commands that touch more than their keys
// (KEYS, SCAN, FLUSHALL, RANDOMKEY; SORT with BY or GET; SELECT and others that concern another database).
type KeyFinder func(name string, args []Arg) (Keys, bool)

// Spec is one key spec of a command: where to begin, and how to find the keys from there.
type Spec struct {
	// Begin: at Index.
	Index int
	// A range from Index on: Last counts from Index, or from the end if negative; every Step-th argument is a key. With
	// Limit above 1 and Last -1, only the first 1/Limit of the remaining arguments are keys.
	Last  int
	Step  int
	Limit int
	// If Numbered: the argument at NumAt is the number of keys, and FirstAt is the first key, both counted from Index.
	Numbered       bool
	NumAt, FirstAt int
}

// Find appends the arguments that may be keys by this spec. It reports false if it cannot tell.
func (s Spec) Find(args []Arg, keys *Keys) bool {
	n := len(args) // arguments that certainly exist
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
					return true // the command fails or has no keys
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
			last = n // there may be so many more arguments that all known ones are in the range
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
