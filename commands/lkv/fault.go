package lkv

// LKV.FAULT: the next commands that match a pattern are delayed, fail or lose their connection.

import (
	"bytes"

	"github.com/limitkv/limitkv/server/command"
)

// fault is what is to happen to so many commands yet.
type fault struct {
	id      int64
	pattern []byte
	left    int64
	what    command.Injected
}

const (
	// faultsMax bounds the list, which every command is compared with.
	faultsMax = 1000
	// faultCountMax is the most commands that one fault can be for.
	faultCountMax = 1_000_000_000
	// delayMaxMillis is the longest delay, a day.
	delayMaxMillis = 86_400_000
)

func (in *injector) faultRow() *command.Command {
	f := family{in.s.Keyspace}
	return &command.Command{
		Name: "lkv.fault", Arity: -2, Group: command.GroupTest, Since: "0.2.0",
		Flags:      command.Test | command.NoScript | command.NoMulti | command.Loading | command.Stale,
		Summary:    "Makes commands that clients send late, fail, or end their connection.",
		Complexity: "O(1)",
		Sub: []*command.Command{
			f.row("add", -5, "pattern:string count:integer fault=(ERROR text:string | DELAY ms:integer | DISCONNECT)",
				"Gives the next commands that match a fault, and returns its number.", in.addFault),
			f.row("list", 2, "", "Lists the faults that are still to happen.", in.listFaults),
			f.row("clear", 2, "", "Takes all faults back and returns how many there were.", in.clearFaults),
		},
	}
}

func (in *injector) addFault(c *command.Ctx) {
	a := c.Cursor(2)
	f := &fault{pattern: bytes.Clone(a.Bytes())}
	f.left = a.IntRange(1, faultCountMax, "ERR the count is out of range, it can be 1 to 1000000000")
	switch {
	case a.IsWith("ERROR", 1):
		f.what.Error = string(a.Bytes())
		if f.what.Error == "" || bytes.ContainsAny([]byte(f.what.Error), "\r\n") {
			a.Fail("ERR the text of an error is one line")
		}
	case a.IsWith("DELAY", 1):
		f.what.DelayMicros = 1000 * a.IntRange(1, delayMaxMillis, "ERR the delay is out of range, it can be 1 to 86400000 ms")
	case a.Is("DISCONNECT"):
		f.what.Disconnect = true
	default:
		a.Syntax()
	}
	if a.More() {
		a.Syntax()
	}
	if a.Failed(c) {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	p := in.places.Of(c.KS)
	if len(p.faults) == faultsMax {
		c.Error("ERR there are too many faults already")
		return
	}
	in.lastID++
	f.id = in.lastID
	p.faults = append(p.faults, f)
	in.arm()
	c.Int(f.id)
}

func (in *injector) listFaults(c *command.Ctx) {
	in.mu.Lock()
	defer in.mu.Unlock()
	faults := in.places.Of(c.KS).faults
	c.Array(len(faults))
	for _, f := range faults {
		c.Map(4)
		c.BulkString("id")
		c.Int(f.id)
		c.BulkString("pattern")
		c.Bulk(f.pattern)
		c.BulkString("left")
		c.Int(f.left)
		switch {
		case f.what.Disconnect:
			c.BulkString("disconnect")
			c.BulkString("")
		case f.what.Error != "":
			c.BulkString("error")
			c.BulkString(f.what.Error)
		default:
			c.BulkString("delay")
			c.Int(f.what.DelayMicros / 1000)
		}
	}
}

func (in *injector) clearFaults(c *command.Ctx) {
	in.mu.Lock()
	defer in.mu.Unlock()
	p := in.places.Of(c.KS)
	c.Int(int64(len(p.faults)))
	p.faults = nil
	in.arm()
}
