// Package geo, internal to the server, is the family of geographic places: members of sorted sets, whose scores are
// geohashes.
package geo

import (
	"fmt"
	"math"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
	"github.com/limitkv/limitkv/zset"
)

type family struct{ limits *params.ZSetLimits }

// Commands are the rows of the family.
func Commands(s *command.Server) []*command.Command {
	f := &family{s.Config.ZSet()}
	rows := []*command.Command{f.geoaddRow(), geodistRow, geohashRow, geoposRow}
	return append(rows, f.searchRows()...)
}

var geoACL = []string{"geo"}

const readKey = command.RO | command.Access

// lookup finds a sorted set for reading, nil if the key is missing.
func lookup(c *command.Ctx, key []byte) (*zset.Set, bool) {
	e, ok := c.Lookup(key, engine.KindZSet)
	return c.ReadZSet(e), ok
}

// place reads a longitude and a latitude.
func place(a *command.Args) (longitude, latitude float64) {
	longitude, latitude = a.Float(), a.Float()
	if math.Abs(longitude) > longitudeMax || math.Abs(latitude) > latitudeMax {
		a.Fail("ERR invalid longitude,latitude pair " + fixed(longitude) + "," + fixed(latitude))
	}
	return longitude, latitude
}

// fixed is C's %f.
func fixed(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return fmt.Sprintf("%f", f)
}

func (f *family) geoaddRow() *command.Command {
	return &command.Command{
		Name: "geoadd", Arity: -5, Group: command.GroupGeo, Since: "3.2.0",
		Flags:      command.Write | command.DenyOOM,
		ACL:        geoACL,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Update)},
		Summary:    "Adds places to a set of them, or moves them.",
		Complexity: "O(log N) for each place",
		Syntax:     "key [condition=(NX | XX)] [change=CH] data={longitude:double latitude:double member:string}...",
		History:    [][2]string{{"6.2.0", "CH, NX and XX."}},
		Run:        f.geoadd,
	}
}

func (f *family) geoadd(c *command.Ctx) {
	a := c.Cursor(2)
	var flags zset.Flags
	changed := false
	for more := true; more; {
		switch {
		case a.Is("NX"):
			flags |= zset.NX
		case a.Is("XX"):
			flags |= zset.XX
		case a.Is("CH"):
			changed = true
		default:
			more = false
		}
	}
	places := a.Rest()
	n := len(places) / 3
	if len(places)%3 != 0 || flags == zset.NX|zset.XX {
		c.Error(command.ErrSyntax)
		return
	}
	var few [16]float64
	scores := few[:0]
	a = command.ArgsOf(places...)
	for range n {
		longitude, latitude := place(&a)
		a.Bytes()
		if a.Failed(c) {
			return
		}
		scores = append(scores, scoreOf(longitude, latitude))
	}
	if n == 0 {
		c.Error(command.ErrSyntax)
		return
	}
	key := c.Args[1]
	e, ok := c.LookupWrite(key, engine.KindZSet)
	if !ok {
		return
	}
	z := c.EditZSet(key, e)
	lim := f.limits.Now()
	switch {
	case z != nil:
		z.Prepare(n, 0, lim)
	case flags&zset.XX != 0:
		c.Int(0)
		return
	default:
		z = c.NewZSet(key)
		z.Prepare(n, len(places[2]), lim)
	}
	lim.Room = c.EditRoom()
	added, updated := 0, 0
	for i, score := range scores {
		switch outcome, _ := z.Add(places[3*i+2], score, flags, lim); outcome {
		case zset.Added:
			added++
		case zset.Updated:
			updated++
		}
	}
	if added+updated > 0 {
		c.Changed(key, engine.EventZSet, "zadd")
		if c.Logging() {
			args := append([][]byte{[]byte("zadd")}, c.Args[1:len(c.Args)-len(places)]...)
			for i, score := range scores {
				args = append(args, command.Number(int64(score)), places[3*i+2])
			}
			c.Effect(args...)
		}
	}
	if changed {
		added += updated
	}
	c.Int(int64(added))
}

// unit reads a unit of length, and returns its length in meters.
func unit(a *command.Args) float64 {
	switch {
	case a.Is("M"):
		return 1
	case a.Is("KM"):
		return 1000
	case a.Is("FT"):
		return 0.3048
	case a.Is("MI"):
		return 1609.34
	}
	a.Fail("ERR unsupported unit provided. please use M, KM, FT, MI")
	return 1
}

var geodistRow = &command.Command{
	Name: "geodist", Arity: -4, Group: command.GroupGeo, Since: "3.2.0",
	Flags:      command.ReadOnly,
	ACL:        geoACL,
	Keys:       []command.KeySpec{command.Key(1, readKey)},
	Summary:    "Returns how far two members are from each other.",
	Complexity: "O(1)",
	Syntax:     "key member1:string member2:string [unit=(m | km | ft | mi)]",
	Run: func(c *command.Ctx) {
		meters := 1.0
		if len(c.Args) > 5 {
			c.Error(command.ErrSyntax)
			return
		}
		if len(c.Args) == 5 {
			a := c.Cursor(4)
			if meters = unit(&a); a.Failed(c) {
				return
			}
		}
		z, ok := lookup(c, c.Args[1])
		if !ok {
			return
		}
		if z == nil {
			c.Null()
			return
		}
		score1, ok1 := z.Score(c.Args[2])
		score2, ok2 := z.Score(c.Args[3])
		if !ok1 || !ok2 {
			c.Null()
			return
		}
		x1, y1 := placeOf(score1)
		x2, y2 := placeOf(score2)
		d := between(x1, y1, x2, y2, false)
		if d.rounds(meters) {
			d = between(x1, y1, x2, y2, true)
		}
		replyDistance(c, d, meters)
	},
}

// replyDistance replies a distance, which is text in RESP3 too.
func replyDistance(c *command.Ctx, d distance, unit float64) {
	var text [32]byte
	c.Bulk(appendDistance(text[:0], d.meters/unit))
}

var geoposRow = &command.Command{
	Name: "geopos", Arity: -2, Group: command.GroupGeo, Since: "3.2.0",
	Flags:      command.ReadOnly,
	ACL:        geoACL,
	Keys:       []command.KeySpec{command.Key(1, readKey)},
	Summary:    "Returns where members are.",
	Complexity: "O(1) for each member",
	Syntax:     "key [member:string...]",
	Run: func(c *command.Ctx) {
		eachScore(c, func(score float64, ok bool) {
			if !ok {
				c.NullArray()
				return
			}
			longitude, latitude := placeOf(score)
			c.Array(2)
			c.Double(longitude)
			c.Double(latitude)
		})
	},
}

var geohashRow = &command.Command{
	Name: "geohash", Arity: -2, Group: command.GroupGeo, Since: "3.2.0",
	Flags:      command.ReadOnly,
	ACL:        geoACL,
	Keys:       []command.KeySpec{command.Key(1, readKey)},
	Summary:    "Returns where members are, as geohashes of eleven letters.",
	Complexity: "O(1) for each member",
	Syntax:     "key [member:string...]",
	Run: func(c *command.Ctx) {
		eachScore(c, func(score float64, ok bool) {
			if ok {
				c.BulkString(geohash(score))
			} else {
				c.Null()
			}
		})
	},
}

// eachScore replies an array, in which reply writes an element for each member.
func eachScore(c *command.Ctx, reply func(score float64, ok bool)) {
	z, ok := lookup(c, c.Args[1])
	if !ok {
		return
	}
	c.Array(len(c.Args) - 2)
	for _, member := range c.Args[2:] {
		score, found := 0.0, false
		if z != nil {
			score, found = z.Score(member)
		}
		reply(score, found)
	}
}
