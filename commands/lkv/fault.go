package lkv

// LKV.FAULT: the next commands that match a pattern are delayed, fail or lose their connection.

import (
	"bytes"

	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/faults"
)

const (
	// faultCountMax is the most commands that one fault can affect.
	faultCountMax = 1_000_000_000
	// delayMaxMillis is the longest delay, a day.
	delayMaxMillis = 86_400_000
)

func (f family) faultRow() *command.Command {
	return &command.Command{
		Name: "lkv.fault", Arity: -2, Group: command.GroupTest, Since: "0.2.0",
		Flags:      command.Test | command.NoScript | command.NoMulti | command.Loading | command.Stale,
		Summary:    "Makes commands that clients send late, fail, or end their connection.",
		Complexity: "O(1)",
		Sub: []*command.Command{
			f.row("add", -5, "pattern:string count:integer fault=(ERROR text:string | DELAY ms:integer | DISCONNECT)",
				"Gives the next commands that match a fault, and returns its number.", f.addFault),
			f.row("list", 2, "", "Lists the faults that are still to happen.", f.listFaults),
			f.row("clear", 2, "", "Takes all faults back and returns how many there were.", f.clearFaults),
		},
	}
}

func (f family) addFault(c *command.Ctx) {
	a := c.Cursor(2)
	fault := faults.Fault{Pattern: bytes.Clone(a.Bytes())}
	fault.Left = a.IntRange(1, faultCountMax, "ERR the count is out of range, it can be 1 to 1000000000")
	switch {
	case a.IsWith("ERROR", 1):
		fault.What.Error = string(a.Bytes())
		if fault.What.Error == "" || bytes.ContainsAny([]byte(fault.What.Error), "\r\n") {
			a.Fail("ERR the text of an error is one line")
		}
	case a.IsWith("DELAY", 1):
		fault.What.DelayMicros = 1000 * a.IntRange(1, delayMaxMillis, "ERR the delay is out of range, it can be 1 to 86400000 ms")
	case a.Is("DISCONNECT"):
		fault.What.Disconnect = true
	default:
		a.Syntax()
	}
	if a.More() {
		a.Syntax()
	}
	if a.Failed(c) {
		return
	}
	id := f.s.Faults.Add(c.KS, fault)
	if id == 0 {
		c.Error("ERR there are too many faults already")
		return
	}
	c.Int(id)
}

func (f family) listFaults(c *command.Ctx) {
	list := f.s.Faults.List(c.KS)
	c.Array(len(list))
	for _, fault := range list {
		c.Map(4)
		c.BulkString("id")
		c.Int(fault.ID)
		c.BulkString("pattern")
		c.Bulk(fault.Pattern)
		c.BulkString("left")
		c.Int(fault.Left)
		switch {
		case fault.What.Disconnect:
			c.BulkString("disconnect")
			c.BulkString("")
		case fault.What.Error != "":
			c.BulkString("error")
			c.BulkString(fault.What.Error)
		default:
			c.BulkString("delay")
			c.Int(fault.What.DelayMicros / 1000)
		}
	}
}

func (f family) clearFaults(c *command.Ctx) { c.Int(int64(f.s.Faults.Clear(c.KS))) }
