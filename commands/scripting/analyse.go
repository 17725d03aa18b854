package scripting

// Static analysis has to know where the keys of commands are. It reads that from the table's key specs.

import (
	"github.com/limitkv/limitkv/luavm/analysis"
	"github.com/limitkv/limitkv/server/command"
)

// beyondKeys are the flags of commands that touch more than the keys that
// their specs name.
const beyondKeys = command.WholeKeyspace | command.TouchesArbitraryKeys

// keys answers the analysis' question from the table. Databases do not matter, because a key's lock does not depend on them.
func (f *family) keys(name string, args []analysis.Arg) (found analysis.Keys, ok bool) {
	cmd := f.s.Table.Find([]byte(name))
	if cmd == nil {
		return found, false
	}
	if cmd.HasSub() {
		if len(args) < 2 || !args[1].Const || args[1].Rest {
			return found, false
		}
		if sub := cmd.SubCommand([]byte(args[1].Value)); sub != nil {
			cmd = sub
		}
	}
	if cmd.Flags&command.NoScript != 0 {
		// It is refused, or DEBUG SET-DISABLE-DENY-SCRIPTS lets it pass.
		return found, cmd.Plan == nil && cmd.Flags&command.WholeKeyspace == 0
	}
	if cmd.Flags&beyondKeys != 0 || cmd.Plan != nil || cmd.Also != nil || cmd.GetKeys != nil {
		return found, false
	}
	for _, k := range cmd.Keys {
		if k.Unknown {
			return found, false
		}
		index := k.Index
		if k.Keyword != "" {
			if index = seek(k, args); index < 0 {
				return found, false
			}
		}
		spec := analysis.Spec{
			Index: index, Last: k.Last, Step: k.Step, Limit: k.Limit,
			Numbered: k.Numbered, NumAt: k.NumAt, FirstAt: k.FirstAt,
		}
		if !spec.Find(args, &found) {
			return found, false
		}
	}
	return found, true
}

// seek finds where the keys of a spec begin, -1 if that is unknown. An unknown argument reads as empty, which is no option:
// if it stands in an option's place, the keys behind it are not found.
func seek(k command.KeySpec, args []analysis.Arg) int {
	var words [][]byte
	for _, arg := range args {
		if arg.Rest {
			break
		}
		value := ""
		if arg.Const {
			value = arg.Value
		}
		words = append(words, []byte(value))
	}
	return k.Seek(words)
}
