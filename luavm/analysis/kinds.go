package analysis

// The values that a variable can hold. The kinds form a small lattice: no value yet (nil at run time), one of the kinds
// that matter, any value. The inference starts with no values. It goes over the whole script again and again, and joins into
// every variable, parameter and function result the values assigned to it, until no value rises any more. The result then
// holds at every moment of every run.

type kind uint8

const (
	kindNone    kind = iota // nil (or false) only
	kindKey                 // nil, or an element of KEYS
	kindKeys                // the table KEYS
	kindArgs                // the table ARGV
	kindRedis               // the table redis
	kindCall                // redis.call or redis.pcall
	kindBuiltin             // a library, or a function of one, by name
	kindFunc                // one function of the script
	kindConst               // one of a few constant strings or whole numbers
	kindAny                 // any value that is not sensitive
)

// value is what an expression can evaluate to. Values are small and are compared with same.
type value struct {
	kind   kind
	name   string    // of a builtin: "unpack", "string", "string.rep"
	fn     *function // of kindFunc
	consts []string  // of kindConst, at most constsMax
	number bool      // if not nil or false, it is a number
}

// constsMax is how many constants one value may have; with more it becomes any value.
const constsMax = 8

var (
	anything = value{kind: kindAny}
	aNumber  = value{kind: kindAny, number: true}
	aKey     = value{kind: kindKey}
)

// sensitive tells whether the analysis must follow every use of a value: code that it does not follow could change the
// table KEYS, or touch any key through redis or redis.call.
func (v value) sensitive() bool {
	return v.kind == kindKeys || v.kind == kindRedis || v.kind == kindCall
}

func (v value) same(w value) bool {
	if v.kind != w.kind || v.name != w.name || v.fn != w.fn || v.number != w.number || len(v.consts) != len(w.consts) {
		return false
	}
	for i := range v.consts {
		if v.consts[i] != w.consts[i] {
			return false
		}
	}
	return true
}

// constant is a literal.
func constant(s string, number bool) value {
	return value{kind: kindConst, consts: []string{s}, number: number}
}

// sole returns the constant that v always is.
func (v value) sole() (string, bool) {
	if v.kind == kindConst && len(v.consts) == 1 {
		return v.consts[0], true
	}
	return "", false
}

// join is the least value in the lattice that covers both.
func join(v, w value) value {
	switch {
	case v.kind == kindNone:
		return w
	case w.kind == kindNone:
		return v
	case v.same(w):
		return v
	case v.kind == kindConst && w.kind == kindConst:
		u := value{kind: kindConst, number: v.number && w.number, consts: v.consts}
		for _, c := range w.consts {
			if !contains(u.consts, c) {
				u.consts = append(u.consts[:len(u.consts):len(u.consts)], c)
			}
		}
		if len(u.consts) <= constsMax && v.number == w.number {
			return u
		}
	}
	return value{kind: kindAny, number: v.number && w.number}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// merge joins two values. If the result is any value, the two are no longer followed: a sensitive one among them then
// prevents the proof, and a function may be called by anyone, see release.
func (a *analyzer) merge(v, w value, line int) value {
	u := join(v, w)
	if u.kind == kindAny {
		a.release(v, line)
		a.release(w, line)
	}
	return u
}

// release records that a value is no longer followed.
func (a *analyzer) release(v value, line int) {
	switch v.kind {
	case kindFunc:
		a.escape(v.fn)
	case kindKeys:
		a.keysFail(line, "KEYS is used in a way that is not followed")
	case kindRedis:
		a.keysFail(line, "the table redis is used as a value")
	case kindCall:
		a.keysFail(line, "redis.call is used as a value")
	}
}

// escape records that a function may be called by anyone with any arguments.
func (a *analyzer) escape(f *function) {
	if f.escaped {
		return
	}
	f.escaped = true
	a.changed = true
	for _, p := range f.params {
		a.assign(p, anything, f.line)
	}
}

// assign joins a value into a variable.
func (a *analyzer) assign(v *variable, w value, line int) {
	u := a.merge(v.val, w, line)
	if !u.same(v.val) {
		v.val = u
		a.changed = true
	}
}

// globals are the globals that a proven script may use. All functions among them and in these libraries are harmless for
// the proof: they can neither change KEYS, unless they get it as an argument, nor reach redis.call.
// Intentionally missing: _G, getfenv, setfenv, load, loadstring, dofile, rawset, rawget, setmetatable, getmetatable,
// coroutine, newproxy, debug, require, module.
var globals = map[string]bool{
	"assert": true, "error": true, "ipairs": true, "next": true, "pairs": true, "pcall": true, "rawequal": true,
	"select": true, "tonumber": true, "tostring": true, "type": true, "unpack": true, "xpcall": true,
	"math": true, "string": true, "table": true, "bit": true, "struct": true, "cjson": true, "cmsgpack": true,
	"os": true, "_VERSION": true, "gcinfo": true, "collectgarbage": true,
}

// readers are the functions that may get the table KEYS as their first argument: they only read it, do not store it
// and do not call other functions.
var readers = map[string]bool{
	"unpack": true, "next": true, "type": true, "tostring": true, "table.getn": true, "table.maxn": true,
	"table.concat": true, "cjson.encode": true, "cmsgpack.pack": true,
}

// numeric are the functions that return one number, or nil.
var numeric = map[string]bool{
	"tonumber": true, "table.getn": true, "table.maxn": true, "string.len": true, "gcinfo": true, "collectgarbage": true,
	"os.clock": true, "math.abs": true, "math.ceil": true, "math.floor": true, "math.max": true, "math.min": true,
	"math.fmod": true, "math.mod": true, "math.pow": true, "math.sqrt": true, "math.random": true, "math.exp": true,
	"math.log": true, "math.log10": true, "math.huge": true, "math.pi": true, "struct.size": true,
	"bit.tobit": true, "bit.bnot": true, "bit.band": true, "bit.bor": true, "bit.bxor": true, "bit.lshift": true,
	"bit.rshift": true, "bit.arshift": true, "bit.rol": true, "bit.ror": true, "bit.bswap": true,
}

// single are the functions that return exactly one value, so that a call as the last argument is one argument. The
// numeric functions also do.
var single = map[string]bool{
	"tostring": true, "type": true, "rawequal": true, "table.concat": true, "string.sub": true, "string.upper": true,
	"string.lower": true, "string.rep": true, "string.reverse": true, "string.format": true, "string.char": true,
	"struct.pack": true, "cjson.encode": true, "cjson.decode": true, "cmsgpack.pack": true, "bit.tohex": true,
	"redis.sha1hex": true,
}

// redisHarmless are the members of redis that cannot break a proof.
var redisHarmless = map[string]bool{
	"sha1hex": true, "status_reply": true, "error_reply": true, "log": true, "setresp": true, "set_repl": true,
	"replicate_commands": true, "breakpoint": true, "debug": true, "acl_check_cmd": true,
	"LOG_DEBUG": true, "LOG_VERBOSE": true, "LOG_NOTICE": true, "LOG_WARNING": true,
	"REPL_ALL": true, "REPL_AOF": true, "REPL_REPLICA": true, "REPL_SLAVE": true, "REPL_NONE": true,
	"REDIS_VERSION": true, "REDIS_VERSION_NUM": true,
}
