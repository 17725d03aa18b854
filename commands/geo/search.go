package geo

// GEOSEARCH, GEORADIUS and related commands: six commands for one search.

import (
	"slices"

	"github.com/limitkv/limitkv/commands/partialsort"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/zset"
)

// variant describes one of the commands.
type variant struct {
	search   bool // GEOSEARCH...: the middle and the size are options
	byMember bool // GEORADIUSBYMEMBER
	mayStore bool // STORE and STOREDIST are options
	store    bool // GEOSEARCHSTORE
}

func (f *family) searchRows() []*command.Command {
	const (
		units   = "unit=(m | km | ft | mi)"
		count   = " [count-block={COUNT count:integer [ANY]}]"
		order   = " [order=(ASC | DESC)]"
		with    = " [WITHCOORD] [WITHDIST] [WITHHASH]"
		store   = " [store=(STORE storekey~key:key@1 | STOREDIST storedistkey~key:key@2)]"
		point   = "key longitude:double latitude:double radius:double " + units
		member  = "key member:string radius:double " + units
		from    = "from=(FROMMEMBER member:string | FROMLONLAT fromlonlat={longitude:double latitude:double})"
		by      = " by=(circle={BYRADIUS radius:double " + units + "} | box={BYBOX width:double height:double " + units + "})"
		cost    = "O(N + log M), N being the number of members near the area and M of all members"
		upper   = "Units in upper case."
		anyNote = "ANY."
	)
	row := func(name string, arity int, since, syntax, summary string, flags command.Flags, v variant) *command.Command {
		return &command.Command{
			Name: name, Arity: arity, Group: command.GroupGeo, Since: since,
			Flags:      flags,
			ACL:        geoACL,
			Keys:       []command.KeySpec{command.Key(1, readKey)},
			Summary:    summary,
			Complexity: cost,
			Syntax:     syntax,
			History:    [][2]string{{"7.0.0", upper}},
			Run:        func(c *command.Ctx) { f.searchIn(c, v) },
		}
	}
	old := func(c *command.Command, replaced string) *command.Command {
		c.DeprecatedSince, c.ReplacedBy = "6.2.0", replaced
		c.History = [][2]string{{"6.2.0", anyNote}, {"7.0.0", upper}}
		return c
	}
	storing := func(c *command.Command, from int) *command.Command {
		for _, word := range []string{"STORE", "STOREDIST"} {
			c.Keys = append(c.Keys, command.KeySpec{
				Flags: command.OW | command.Update, Keyword: word, StartFrom: from, Seek: seekStore(word), Step: 1,
			})
		}
		return c
	}
	const write = command.Write | command.DenyOOM
	geosearchstore := row("geosearchstore", -8, "6.2.0", "destination:key source:key@1 "+from+by+order+count+" [STOREDIST]",
		"Stores the members inside a circle or a box.", write, variant{search: true, store: true})
	geosearchstore.Keys = []command.KeySpec{command.Key(1, command.OW|command.Update), command.Key(2, readKey)}
	return []*command.Command{
		storing(old(row("georadius", -6, "3.2.0", point+with+count+order+store,
			"Returns or stores the members within a distance from a place.", write, variant{mayStore: true}),
			"`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument"), 6),
		old(row("georadius_ro", -6, "3.2.10", point+with+count+order,
			"Returns the members within a distance from a place.", command.ReadOnly, variant{}),
			"`GEOSEARCH` with the `BYRADIUS` argument"),
		storing(old(row("georadiusbymember", -5, "3.2.0", member+with+count+order+store,
			"Returns or stores the members within a distance from a member.", write, variant{byMember: true, mayStore: true}),
			"`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments"), 5),
		old(row("georadiusbymember_ro", -5, "3.2.10", member+with+count+order,
			"Returns the members within a distance from a member.", command.ReadOnly, variant{byMember: true}),
			"`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments"),
		row("geosearch", -7, "6.2.0", "key "+from+by+order+count+with,
			"Returns the members inside a circle or a box.", command.ReadOnly, variant{search: true}),
		geosearchstore,
	}
}

// seekStore finds the argument after a word, STORE or STOREDIST. If they are given several times, the last one counts. The
// destination may have the name of an option.
func seekStore(word string) func(args [][]byte) int {
	return func(args [][]byte) int {
		at := -1
		for i := 5; i+1 < len(args); i++ {
			if command.EqualFold(args[i], "STORE") || command.EqualFold(args[i], "STOREDIST") {
				i++
				if command.EqualFold(args[i-1], word) {
					at = i
				}
			}
		}
		return at
	}
}

// query is what a command's arguments say.
type query struct {
	shape
	withDistance, withHash, withPlace bool
	sorted, desc                      bool
	count                             int64 // 0: all
	any                               bool
	store                             []byte // nil: replied
	storeDistance                     bool
}

func (f *family) searchIn(c *command.Ctx, v variant) {
	from := 1
	if v.store {
		from = 2
	}
	z, ok := lookup(c, c.Args[from])
	if !ok {
		return
	}
	q, ok := parseQuery(c, v, z)
	if !ok {
		return
	}
	if z == nil {
		if q.store != nil {
			f.store(c, q.store, nil, v)
		} else {
			c.Array(0)
		}
		return
	}
	points := q.find(z, c.Expect)
	n := len(points)
	if q.count > 0 {
		n = int(min(q.count, int64(n)))
	}
	if q.sorted {
		compare := q.compare
		if q.desc {
			compare = func(a, b *point) int { return -q.compare(a, b) }
		}
		if n < len(points) {
			partialsort.Sort(points, compare, 0, n)
		} else {
			partialsort.Stable(points, compare)
		}
	}
	points = points[:n]
	if q.store == nil {
		q.reply(c, points)
		return
	}
	f.store(c, q.store, q.result(points), v)
}

// result makes points a set.
func (q *query) result(points []point) *zset.Set {
	score := func(p *point) float64 {
		if !q.storeDistance {
			return p.score
		}
		q.measure(p)
		return p.distance.meters / q.unit
	}
	b := zset.NewBuilder(len(points))
	for i := range points { // a member may occur twice, at the same place
		b.Add(points[i].member, score(&points[i]), func(_, score float64) float64 { return score })
	}
	return b.Set()
}

// parseQuery reads the arguments, in the order in which Redis finds their errors. It replies the error and returns false if
// there is one. z is nil if there is no key; then a member that is the middle is not looked up.
func parseQuery(c *command.Ctx, v variant, z *zset.Set) (q query, ok bool) {
	var a command.Args
	fromMember, fromPlace, byRadius, byBox := false, false, false, false
	switch {
	case v.search && v.store:
		q.store = c.Args[1]
		a = c.Cursor(3)
	case v.search:
		a = c.Cursor(2)
	case v.byMember:
		a = c.Cursor(2)
		q.fromMember(&a, z)
		if z == nil {
			a = c.Cursor(5) // Redis does not look at the radius then
		} else {
			q.byRadius(&a)
		}
	default:
		a = c.Cursor(2)
		q.longitude, q.latitude = place(&a)
		q.byRadius(&a)
	}
	for a.More() {
		switch {
		case a.Is("WITHDIST"):
			q.withDistance = true
		case a.Is("WITHHASH"):
			q.withHash = true
		case a.Is("WITHCOORD"):
			q.withPlace = true
		case a.Is("ANY"):
			q.any = true
		case a.Is("ASC"):
			q.sorted, q.desc = true, false
		case a.Is("DESC"):
			q.sorted, q.desc = true, true
		case a.IsWith("COUNT", 1):
			if q.count = a.Int(); q.count <= 0 {
				a.Fail("ERR COUNT must be > 0")
			}
		case v.mayStore && a.IsWith("STORE", 1):
			q.store, q.storeDistance = a.Bytes(), false
		case v.mayStore && a.IsWith("STOREDIST", 1):
			q.store, q.storeDistance = a.Bytes(), true
		case v.store && a.Is("STOREDIST"):
			q.storeDistance = true
		case v.search && !fromPlace && a.IsWith("FROMMEMBER", 1):
			q.fromMember(&a, z)
			fromMember = true
		case v.search && !fromMember && a.IsWith("FROMLONLAT", 2):
			q.longitude, q.latitude = place(&a)
			fromPlace = true
		case v.search && !byBox && a.IsWith("BYRADIUS", 2):
			q.byRadius(&a)
			byRadius = true
		case v.search && !byRadius && a.IsWith("BYBOX", 3):
			q.byBox(&a)
			byBox = true
		default:
			a.Syntax()
		}
	}
	if q.store != nil && (q.withDistance || q.withHash || q.withPlace) {
		what := "STORE option in GEORADIUS"
		if v.store {
			what = "GEOSEARCHSTORE"
		}
		a.Fail("ERR " + what + " is not compatible with WITHDIST, WITHHASH and WITHCOORD options")
	}
	if v.search && !fromMember && !fromPlace {
		a.Fail("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for " + string(c.Args[0]))
	}
	if v.search && !byRadius && !byBox {
		a.Fail("ERR exactly one of BYRADIUS and BYBOX can be specified for " + string(c.Args[0]))
	}
	if q.any && q.count == 0 {
		a.Fail("ERR the ANY argument requires COUNT argument")
	}
	if q.count != 0 && !q.any {
		q.sorted = true // otherwise any might be returned
	}
	return q, !a.Failed(c)
}

func (q *query) fromMember(a *command.Args, z *zset.Set) {
	member := a.Bytes()
	if z == nil {
		return
	}
	score, ok := z.Score(member)
	if !ok {
		a.Fail("ERR could not decode requested zset member")
		return
	}
	q.longitude, q.latitude = placeOf(score)
}

func (q *query) byRadius(a *command.Args) {
	if q.radius = a.FloatOr("ERR need numeric radius"); q.radius < 0 {
		a.Fail("ERR radius cannot be negative")
	}
	q.box = false
	q.unit = unit(a)
}

func (q *query) byBox(a *command.Args) {
	q.width = a.FloatOr("ERR need numeric width")
	if q.height = a.FloatOr("ERR need numeric height"); q.height < 0 || q.width < 0 {
		a.Fail("ERR height or width cannot be negative")
	}
	q.box = true
	q.unit = unit(a)
}

// pointsAhead is the most points for which memory is allocated before a cell is read: not all may be in the shape.
const pointsAhead = 128

// find gathers the members in the shape, cell by cell; with ANY it ends when
// there are enough. Their names alias the set.
func (q *query) find(z *zset.Set, expect func(elements int)) (points []point) {
	q.prepare()
	enough := func() bool { return q.any && int64(len(points)) >= q.count && len(points) > 0 }
	cells := q.cells()
	last := 0
	for i, h := range cells {
		// In a search over half the earth neighbours may be the same cell.
		if h.none() || last > 0 && h == cells[last] {
			continue
		}
		if enough() {
			break
		}
		from, to := h.scores()
		lo, hi := z.ScoreRange(zset.ScoreBound{Score: from}, zset.ScoreBound{Score: to, Exclusive: true})
		expect(4 * (hi - lo))
		points = slices.Grow(points, min(hi-lo, pointsAhead))
		var p point
		z.Ascend(lo, hi, func(member []byte, score float64) bool {
			if q.locate(&p, score) {
				p.member = member
				points = append(points, p)
			}
			return !enough()
		})
		last = i
	}
	return points
}

func (q *query) reply(c *command.Ctx, points []point) {
	parts := 1
	for _, with := range []bool{q.withDistance, q.withHash, q.withPlace} {
		if with {
			parts++
		}
	}
	c.Array(len(points))
	for i := range points {
		p := &points[i]
		if parts > 1 {
			c.Array(parts)
		}
		c.Bulk(p.member)
		if q.withDistance {
			if p.distance.rounds(q.unit) {
				q.measure(p)
			}
			replyDistance(c, p.distance, q.unit)
		}
		if q.withHash {
			c.Int(int64(p.score))
		}
		if q.withPlace {
			c.Array(2)
			c.Double(p.longitude)
			c.Double(p.latitude)
		}
	}
}

// store puts a result under a key, or deletes the key if there is none, and
// replies the number of members.
func (f *family) store(c *command.Ctx, key []byte, z *zset.Set, v variant) {
	if z == nil || z.Len() == 0 {
		if c.Delete(key) {
			c.Changed(key, engine.EventGeneric, "del")
		}
		c.Int(0)
		return
	}
	event := "georadiusstore"
	if v.search {
		event = "geosearchstore"
	}
	z.Pack(f.limits.Now())
	c.GetWrite(key) // an expired key is removed first
	c.PutObject(key, engine.KindZSet, z, 0)
	c.Changed(key, engine.EventZSet, event)
	c.Int(int64(z.Len()))
}
