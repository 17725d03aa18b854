// The families: which commands are sent, in which forms. A line is a template of grammar.go; the number in front says
// how many times as likely it is. Left out is what no two servers need agree on (SPOP, SRANDMEMBER of several) and what
// waits or looks at the clock in milliseconds.

package sequence

import "strings"

var strs = newFamily("string", `
	6 SET <str> <value> [NX|XX] [GET] [KEEPTTL|EX <seconds>|PX <millis>|EXAT <at>|PXAT <pat>|EXAT 0]
	4 SET <str> <value>
	2 SET <str> <int>
	SET <str> <value> PXAT <past>
	4 GET <str>
	GETSET <str> <value>
	GETDEL <str>
	GETEX <str> [PERSIST|EX <seconds>|PX <millis>|EXAT <at>|PXAT <pat>|PXAT <past>]
	2 MGET {<any>}
	MSET {<str> <value>}
	MSETNX {<str> <value>}
	SETNX <str> <value>
	SETEX <str> <seconds> <value>
	PSETEX <str> <millis> <value>
	2 APPEND <str> <value>
	APPEND <str> <big>
	STRLEN <str>
	2 SETRANGE <str> <offset> <value>
	2 GETRANGE <str> <index> <index>
	SUBSTR <str> <index> <index>
	2 INCR <str>
	2 DECR <str>
	2 INCRBY <str> <int>
	DECRBY <str> <int>
	3 INCRBYFLOAT <str> <float>
	2 LCS <str> <str> [LEN|IDX [MINMATCHLEN <small>] [WITHMATCHLEN]]
	OBJECT ENCODING <str>
	TTL <str>
	PERSIST <str>
	DEL <str>
`)

var bitmaps = newFamily("bitmap", `
	4 SETBIT <str> <bitpos> <bit>
	2 GETBIT <str> <bitpos>
	2 SET <str> <value>
	APPEND <str> <value>
	SET <str> <int>
	3 BITCOUNT <str> [<index> <index> [BYTE|BIT]]
	4 BITPOS <str> <bit> [<index>|<index> <index>|<index> <index> (BYTE|BIT)]
	3 BITOP (AND|OR|XOR) <str> {<str>}
	BITOP NOT <str> <str>
	4 BITFIELD <str> {GET <bits> <bitslot>|SET <bits> <bitslot> <int>|INCRBY <bits> <bitslot> <int>|OVERFLOW (WRAP|SAT|FAIL)}
	BITFIELD_RO <str> {GET <bits> <bitslot>}
	GET <str>
	STRLEN <str>
	OBJECT ENCODING <str>
	DEL <str>
`)

var hashes = newFamily("hash", `
	8 HSET <hash> {<field> <value>}
	HMSET <hash> {<field> <value>}
	HSETNX <hash> <field> <value>
	HSET <hash> <field> <big>
	2 HGET <hash> <field>
	2 HMGET <hash> {<field>}
	2 HGETALL <hash>
	HKEYS <hash>
	HVALS <hash>
	HLEN <hash>
	HEXISTS <hash> <field>
	HSTRLEN <hash> <field>
	2 HDEL <hash> {<field>}
	2 HINCRBY <hash> <field> <int>
	2 HINCRBYFLOAT <hash> <field> <float>
	HRANDFIELD <hash> [<small> [WITHVALUES]]
	HSCAN <hash> 0 [MATCH <pattern>] [COUNT 1000] [NOVALUES]
	2 HEXPIRE <hash> <seconds> [NX|XX|GT|LT] FIELDS 1 <field>
	HPEXPIRE <hash> <millis> [NX|XX|GT|LT] FIELDS 2 <field> <field>
	HEXPIREAT <hash> (<at>|<past>) [NX|XX|GT|LT] FIELDS 1 <field>
	HPEXPIREAT <hash> <pat> [NX|XX|GT|LT] FIELDS 2 <field> <field>
	HTTL <hash> FIELDS 2 <field> <field>
	HPTTL <hash> FIELDS 1 <field>
	HEXPIRETIME <hash> FIELDS 3 <field> <field> <field>
	HPEXPIRETIME <hash> FIELDS 1 <field>
	2 HPERSIST <hash> FIELDS 2 <field> <field>
	HGETDEL <hash> FIELDS 1 <field>
	HGETEX <hash> [EX <seconds>|PX <millis>|EXAT <at>|PXAT <pat>|PERSIST|PXAT <past>] FIELDS 2 <field> <field>
	2 HSETEX <hash> [FNX|FXX] [EX <seconds>|PX <millis>|EXAT <at>|PXAT <pat>|KEEPTTL] FIELDS 2 <field> <value> <field> <value>
	OBJECT ENCODING <hash>
	DEL <hash>
	RENAME <hash> <hash>
	COPY <hash> <hash> REPLACE
`)

var zsets = newFamily("sortedset", `
	8 ZADD <zset> {<score> <member>}
	4 ZADD <zset> [NX|XX|GT|LT|XX GT|XX LT] [CH] {<score> <member>}
	2 ZADD <zset> [NX|XX|GT|LT] [CH] INCR <score> <member>
	ZADD <zset> <score> <big>
	6 ZADD <lex> {0 <name>}
	2 ZINCRBY <zset> <score> <member>
	ZSCORE <zset> <member>
	ZMSCORE <zset> {<member>}
	ZCARD <zset>
	ZCOUNT <zset> <min> <max>
	ZLEXCOUNT <lex> <lexmin> <lexmax>
	2 ZRANK <zset> <member> [WITHSCORE]
	ZREVRANK <zset> <member> [WITHSCORE]
	2 ZRANGE <zset> <index> <index> [REV] [WITHSCORES]
	2 ZRANGE <zset> <min> <max> BYSCORE [LIMIT <small> <index>] [WITHSCORES]
	ZRANGE <zset> <max> <min> BYSCORE REV [LIMIT <small> <index>] [WITHSCORES]
	ZRANGE <lex> <lexmin> <lexmax> BYLEX [LIMIT <small> <index>]
	ZRANGE <lex> <lexmax> <lexmin> BYLEX REV [LIMIT <small> <index>]
	ZREVRANGE <zset> <index> <index> [WITHSCORES]
	ZRANGEBYSCORE <zset> <min> <max> [WITHSCORES] [LIMIT <small> <index>]
	ZREVRANGEBYSCORE <zset> <max> <min> [WITHSCORES] [LIMIT <small> <index>]
	ZRANGEBYLEX <lex> <lexmin> <lexmax> [LIMIT <small> <index>]
	ZREVRANGEBYLEX <lex> <lexmax> <lexmin> [LIMIT <small> <index>]
	2 ZREM <zset> {<member>}
	ZREMRANGEBYRANK <zset> <index> <index>
	ZREMRANGEBYSCORE <zset> <min> <max>
	ZREMRANGEBYLEX <lex> <lexmin> <lexmax>
	ZPOPMIN <zset> [<small>]
	ZPOPMAX <zset> [<small>]
	ZMPOP 2 <zset> <zset> (MIN|MAX) [COUNT <count>]
	BZPOPMIN <zset> z0 z1 z2 z3 z4 0.001
	BZMPOP 0.001 2 <zset> <zset> (MIN|MAX) [COUNT <count>]
	ZRANGESTORE <zset> <zset> <index> <index> [REV]
	ZRANGESTORE <zset> <zset> <min> <max> BYSCORE [LIMIT <small> <index>]
	ZUNION 2 <zset> <zset> [WEIGHTS <weight> <weight>] [AGGREGATE (SUM|MIN|MAX)] [WITHSCORES]
	ZINTER 2 <zset> (<zset>|<set>) [WEIGHTS <weight> <weight>] [AGGREGATE (SUM|MIN|MAX)] [WITHSCORES]
	ZDIFF 2 <zset> <zset> [WITHSCORES]
	ZINTERCARD 2 <zset> <zset> [LIMIT <small>]
	ZUNIONSTORE <zset> 2 <zset> <zset> [WEIGHTS <weight> <weight>] [AGGREGATE (SUM|MIN|MAX)]
	ZINTERSTORE <zset> 2 <zset> <zset> [WEIGHTS <weight> <weight>] [AGGREGATE (SUM|MIN|MAX)]
	ZDIFFSTORE <zset> 2 <zset> <zset>
	ZRANDMEMBER <zset> [<small> [WITHSCORES]]
	ZSCAN <zset> 0 [MATCH <pattern>] [COUNT 1000]
	SADD <set> {<member>}
	OBJECT ENCODING <zset>
	DEL <zset>
`)

var keys = newFamily("generic", `
	4 SET <str> <value>
	4 HSET <hash> {<field> <value>}
	4 ZADD <zset> {<score> <member>}
	4 ZADD <lex> {0 <name>}
	2 DEL {<any>}
	UNLINK {<any>}
	2 EXISTS {<any>}
	TOUCH {<any>}
	2 TYPE <any>
	3 EXPIRE <any> <seconds> [NX|XX|GT|LT]
	PEXPIRE <any> <millis> [NX|XX|GT|LT]
	2 EXPIREAT <any> (<at>|<past>) [NX|XX|GT|LT]
	2 PEXPIREAT <any> <pat> [NX|XX|GT|LT]
	TTL <any>
	PTTL <any>
	EXPIRETIME <any>
	PEXPIRETIME <any>
	2 PERSIST <any>
	2 RENAME <any> <any>
	RENAMENX <any> <any>
	2 COPY <any> <any> [REPLACE]
	COPY <any> <any> DB <db> [REPLACE]
	MOVE <any> <db>
	KEYS <pattern>
	SCAN 0 COUNT 1000 [MATCH <pattern>] [TYPE (string|hash|zset)]
	DBSIZE
	OBJECT ENCODING <any>
	SORT <lex> ALPHA [ASC|DESC] [LIMIT <small> <small>]
	SORT <zset> BY nosort [ASC|DESC] [LIMIT <small> <small>]
	SELECT <db>
	2 SELECT 0
	SWAPDB <db> <db>
`)

var lists = newFamily("list", `
	6 RPUSH <list> {<value>}
	4 LPUSH <list> {<value>}
	RPUSHX <list> {<value>}
	LPUSHX <list> {<value>}
	RPUSH <list> <big>
	2 LPOP <list> [<small>]
	2 RPOP <list> [<small>]
	3 LRANGE <list> <index> <index>
	2 LINDEX <list> <index>
	2 LSET <list> <index> <value>
	LINSERT <list> (BEFORE|AFTER) <value> <value>
	LREM <list> <index> <value>
	LTRIM <list> <index> <index>
	LLEN <list>
	2 LPOS <list> <value> [RANK <index>] [COUNT <small>] [MAXLEN <small>]
	2 LMOVE <list> <list> (LEFT|RIGHT) (LEFT|RIGHT)
	RPOPLPUSH <list> <list>
	LMPOP 2 <list> <list> (LEFT|RIGHT) [COUNT <count>]
	OBJECT ENCODING <list>
	DEL <list>
	RENAME <list> <list>
`)

var sets = newFamily("set", `
	6 SADD <set> {<member>}
	2 SADD <set> {<int>}
	SADD <set> <big>
	2 SREM <set> {<member>}
	SREM <set> {<int>}
	2 SISMEMBER <set> <member>
	SMISMEMBER <set> {<member>}
	SCARD <set>
	2 SMEMBERS <set>
	2 SMOVE <set> <set> <member>
	SINTER {<set>}
	SUNION {<set>}
	SDIFF {<set>}
	SINTERCARD 2 <set> <set> [LIMIT <small>]
	SINTERSTORE <set> {<set>}
	SUNIONSTORE <set> {<set>}
	SDIFFSTORE <set> {<set>}
	SRANDMEMBER <set> [<small>]
	SSCAN <set> 0 [MATCH <pattern>] [COUNT 1000]
	OBJECT ENCODING <set>
	DEL <set>
`)

// transactions queues commands of the other families; scripting runs them through EVAL.
var (
	transactions = &Family{Name: "transactions", shape: inTransaction}
	scripting    = &Family{Name: "scripting", shape: inScript}
	lua          = &Family{Name: "lua", shape: luaProgram}
)

// Families are all of them, in the order in which they run.
var Families = []*Family{strs, bitmaps, hashes, zsets, keys, lists, sets, transactions, scripting, lua}

// exact makes a command of one of the first families whose reply must be equal to the byte.
func exact(g *generator) []string {
	for {
		f := []*Family{strs, bitmaps, hashes, zsets, keys, lists, sets}[g.IntN(7)]
		args := f.command(g)
		name := strings.ToUpper(args[0])
		if _, special := comparers[name]; !special && !orderedWhenPacked[name] {
			return args
		}
	}
}

// inTransaction makes a MULTI of a few commands and its end, or a command beside it.
func inTransaction(g *generator, _ *Family) []Step {
	if g.IntN(3) == 0 {
		return []Step{{Args: exact(g)}}
	}
	steps := []Step{{Args: []string{"MULTI"}}}
	if g.IntN(4) == 0 {
		steps = append([]Step{{Args: []string{"WATCH", words["any"](g)}}, {Args: exact(g)}}, steps...)
	}
	for range g.IntN(6) {
		steps = append(steps, Step{Args: exact(g)})
	}
	end := "EXEC"
	if g.IntN(10) == 0 {
		end = "DISCARD"
	}
	return append(steps, Step{Args: []string{end}})
}

// The scripts that a random command is run with: straight, caught, and by way of the script's own hands.
const (
	callScript  = "return redis.call(unpack(ARGV))"
	pcallScript = "local r = redis.pcall(unpack(ARGV)) if type(r) == 'table' and r.err then return {'caught', r.err} end return r"
	typeScript  = "local r = redis.pcall(unpack(ARGV)) return {type(r), tostring(type(r) == 'table' and #r or r)}"
	threeScript = "redis.setresp(3) return redis.call(unpack(ARGV))"
	jsonScript  = "local r = redis.pcall(unpack(ARGV)) if type(r) == 'table' then return r end return cjson.encode({r})"
)

func inScript(g *generator, _ *Family) []Step {
	args := exact(g)
	for args[0] == "LCS" && contains(args, "IDX") {
		args = exact(g) // Its map becomes a table, whose order is Lua's.
	}
	script := pick(callScript, callScript, pcallScript, typeScript, threeScript)(g)
	if g.IntN(20) == 0 && strings.EqualFold(args[0], "GET") {
		script = jsonScript
	}
	name := "EVAL"
	if g.IntN(6) == 0 {
		name = "EVAL_RO"
	}
	if len(args) > 1 && g.IntN(2) == 0 {
		return []Step{{Args: append([]string{name, script, "1", args[1]}, args...)}}
	}
	return []Step{{Args: append([]string{name, script, "0"}, args...)}}
}
