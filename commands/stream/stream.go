// Package stream, internal to the server, is the family of streams.
package stream

import (
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/stream"
	"github.com/limitkv/limitkv/server/command"
)

type family struct{ nodeBytes, nodeEntries *atomic.Int64 }

// Commands are the rows of the family.
func Commands(s *command.Server) []*command.Command {
	f := &family{
		nodeBytes:   s.Config.Memory("stream-node-max-bytes", int64(stream.DefaultLimits.MaxBlockBytes), 0, 1<<63-1, "most bytes of a block of a stream, 0 for no limit"),
		nodeEntries: s.Config.Int("stream-node-max-entries", int64(stream.DefaultLimits.MaxBlockEntries), 0, 1<<63-1, "most entries of a block of a stream, 0 for no limit"),
	}
	return []*command.Command{
		f.xaddRow(), f.xtrimRow(), xdelRow, xsetidRow,
		xlenRow, xrangeRow, xrevrangeRow, xreadRow, xreadgroupRow,
		xgroupRow, xackRow, xpendingRow, xclaimRow, xautoclaimRow, xinfoRow,
	}
}

var streamACL = []string{"stream"}

var varies = []string{"nondeterministic_output"}

const (
	readKey   = command.RO | command.Access
	deleteKey = command.RW | command.Delete
)

const errID = "ERR Invalid stream ID specified as stream command argument"

func (f *family) limits() stream.Limits {
	return stream.Limits{MaxBlockBytes: int(f.nodeBytes.Load()), MaxBlockEntries: int(f.nodeEntries.Load())}
}

// lookup finds a stream for reading, nil if the key is missing.
func lookup(c *command.Ctx, key []byte) (*stream.Stream, bool) {
	return command.Object[*stream.Stream](c, key, engine.KindStream)
}

// lookupWrite finds a stream that is going to be changed.
func lookupWrite(c *command.Ctx, key []byte) (*stream.Stream, bool) {
	return command.ObjectWrite[*stream.Stream](c, key, engine.KindStream)
}

// millis is the time of the command as streams have it.
func millis(c *command.Ctx) int64 { return c.Now / 1000 }

// idArg takes an ID. A sequence number that is missing is 0.
func idArg(a *command.Args) stream.ID {
	b := a.Bytes()
	if a.Err() != "" {
		return stream.ID{}
	}
	id, ok := stream.ParseID(b, 0)
	if !ok {
		a.Fail(errID)
	}
	return id
}

// idArgs takes all that is left as IDs.
func idArgs(a *command.Args) []stream.ID {
	ids := make([]stream.ID, 0, a.Left())
	for a.More() {
		ids = append(ids, idArg(a))
	}
	return ids
}

// startArg takes the beginning of a range of IDs.
func startArg(a *command.Args) stream.ID {
	id, exclusive, ok := stream.ParseInterval(a.Bytes(), 0)
	if !ok {
		a.Fail(errID)
	}
	if exclusive {
		if id, ok = id.Next(); !ok {
			a.Fail("ERR invalid start ID for the interval")
		}
	}
	return id
}

// endArg takes the end of a range of IDs.
func endArg(a *command.Args) stream.ID {
	id, exclusive, ok := stream.ParseInterval(a.Bytes(), stream.MaxID.Seq)
	if !ok {
		a.Fail(errID)
	}
	if exclusive {
		if id, ok = id.Prev(); !ok {
			a.Fail("ERR invalid end ID for the interval")
		}
	}
	return id
}

// replyID replies an ID, which is text.
func replyID(c *command.Ctx, id stream.ID) {
	var text [41]byte
	c.Bulk(id.Append(text[:0]))
}

// replyEntry replies the entry that an iterator is at.
func replyEntry(c *command.Ctx, it *stream.Iter) {
	c.Array(2)
	replyID(c, it.ID())
	c.Array(2 * it.Pairs())
	for it.NextPair() {
		c.Bulk(it.Field())
		c.Bulk(it.Value())
	}
}

// expect announces how many entries will be visited, at most count (0: all).
func expect(c *command.Ctx, entries int, count int64) {
	if count > 0 {
		entries = int(min(count, int64(entries)))
	}
	c.Expect(4 * entries)
}

// replyRange replies the entries of a range, at most count of them (0: all).
func replyRange(c *command.Ctx, s *stream.Stream, start, end stream.ID, count int64, reverse bool) {
	expect(c, s.About(start, end), count)
	mark, n := c.Writer.Mark(), int64(0)
	for it := s.Range(start, end, reverse); it.Next(); {
		replyEntry(c, &it)
		if n++; n == count {
			break
		}
	}
	c.ArrayFrom(mark, int(n))
}

// noGroup is the error for a group of a key that exists or does not.
func noGroup(key, group []byte, where string) string {
	return "NOGROUP No such key '" + string(command.Text(key)) + "' or consumer group '" + string(command.Text(group)) + "'" + where
}

// noGroupFor is the error for a group of a key that exists.
func noGroupFor(key, group []byte) string {
	return "NOGROUP No such consumer group '" + string(command.Text(group)) + "' for key name '" + string(command.Text(key)) + "'"
}

// consumerOf finds a consumer of a group or makes it, and records that it was seen. made is called if it was missing.
func consumerOf(c *command.Ctx, key []byte, g *stream.Group, name []byte, made func(name []byte)) *stream.Consumer {
	consumer, created := g.CreateConsumer(name, millis(c))
	if created {
		c.Altered(key, engine.EventStream, "xgroup-createconsumer")
		made(name)
	}
	consumer.SeenMillis = millis(c)
	return consumer
}
