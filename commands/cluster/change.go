package cluster

// Slots and their keys, and the commands that would change the cluster.

import (
	"fmt"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/hashslot"
)

func keySlot(c *command.Ctx) { c.Int(int64(hashslot.Of(c.Args[2]))) }

func countKeys(c *command.Ctx) {
	a := c.Cursor(2)
	slot := a.Int()
	if a.Err() == "" && (slot < 0 || slot > lastSlot) {
		a.Fail("ERR Invalid slot")
	}
	if a.Failed(c) {
		return
	}
	n := int64(0)
	c.Each(func(e engine.Entry) bool {
		if hashslot.Of(e.Key()) == int(slot) {
			n++
		}
		return true
	})
	c.Int(n)
}

func getKeys(c *command.Ctx) {
	a := c.Cursor(2)
	slot, most := a.Int(), a.Int()
	if a.Err() == "" && (slot < 0 || slot > lastSlot || most < 0) {
		a.Fail("ERR Invalid slot or number of keys")
	}
	if a.Failed(c) {
		return
	}
	n, mark := 0, c.Writer.Mark()
	if most > 0 {
		c.Each(func(e engine.Entry) bool {
			if hashslot.Of(e.Key()) == int(slot) {
				c.Bulk(e.Key())
				n++
			}
			return int64(n) < most
		})
	}
	c.ArrayFrom(mark, n)
}

// fixed refuses commands that would change the node's slots or add another node.
func fixed(c *command.Ctx) {
	c.Error("ERR limitkv is a cluster of one node, which keeps all slots and meets no other")
}

// readSlot reads the number of a slot.
func readSlot(a *command.Args) int64 {
	const text = "ERR Invalid or out of range slot"
	n := a.IntOr(text)
	if n < 0 || n > lastSlot {
		a.Fail(text)
	}
	return n
}

func addSlots(c *command.Ctx) {
	a := c.Cursor(2)
	first := int64(-1)
	for a.More() {
		if slot := readSlot(&a); first < 0 {
			first = slot
		}
	}
	if !a.Failed(c) {
		c.Error(fmt.Sprintf("ERR Slot %d is already busy", first))
	}
}

func addSlotsRange(c *command.Ctx) {
	if len(c.Args)%2 == 1 {
		c.Error(command.ErrArity(c.Cmd.FullName()))
		return
	}
	a := c.Cursor(2)
	first := int64(-1)
	for a.More() {
		from, to := readSlot(&a), readSlot(&a)
		if a.Err() == "" && from > to {
			a.Fail(fmt.Sprintf("ERR start slot number %d is greater than end slot number %d", from, to))
		}
		if first < 0 {
			first = from
		}
	}
	if !a.Failed(c) {
		c.Error(fmt.Sprintf("ERR Slot %d is already busy", first))
	}
}

// known reports whether an argument is the node's id; if not, it replies the error.
func (f *family) known(c *command.Ctx, id []byte) bool {
	if string(id) == f.node {
		return true
	}
	c.Error("ERR Unknown node " + command.Repeat(id, len(id)))
	return false
}

func (f *family) failureReports(c *command.Ctx) {
	if f.known(c, c.Args[2]) {
		c.Int(0)
	}
}

func (f *family) replicas(c *command.Ctx) {
	if f.known(c, c.Args[2]) {
		c.Array(0)
	}
}

func failover(c *command.Ctx) {
	if option(c, "FORCE", "TAKEOVER") {
		c.Error("ERR You should send CLUSTER FAILOVER to a replica")
	}
}

func reset(c *command.Ctx) {
	if option(c, "HARD", "SOFT") {
		fixed(c)
	}
}

// option reads the optional argument, which is one of two words. If it is another word, it replies the error.
func option(c *command.Ctx, one, other string) bool {
	a := c.Cursor(2)
	switch {
	case a.Left() > 1:
		a.Fail(command.ErrSubcommandSyntax("CLUSTER", c.Args[1]))
	case a.More() && !a.Is(one) && !a.Is(other):
		a.Syntax()
	}
	return !a.Failed(c)
}

func (f *family) forget(c *command.Ctx) {
	if f.known(c, c.Args[2]) {
		c.Error("ERR I tried hard but I can't forget myself...")
	}
}

func (f *family) replicate(c *command.Ctx) {
	if f.known(c, c.Args[2]) {
		c.Error("ERR Can't replicate myself")
	}
}

func (f *family) bumpEpoch(c *command.Ctx) {
	if f.epoch.CompareAndSwap(0, 1) {
		c.Status("BUMPED 1")
		return
	}
	c.Status(fmt.Sprintf("STILL %d", f.epoch.Load()))
}

func (f *family) setEpoch(c *command.Ctx) {
	a := c.Cursor(2)
	epoch := a.Int()
	if a.Err() == "" && epoch < 0 {
		a.Fail(fmt.Sprintf("ERR Invalid config epoch specified: %d", epoch))
	}
	if a.Failed(c) {
		return
	}
	if !f.epoch.CompareAndSwap(0, epoch) {
		c.Error("ERR Node config epoch is already non-zero")
		return
	}
	c.OK()
}

func (f *family) setSlot(c *command.Ctx) {
	a := c.Cursor(2)
	slot := readSlot(&a)
	if a.Failed(c) {
		return
	}
	switch one := a.Left() == 2; {
	case a.Left() == 1 && a.Is("STABLE"):
		c.OK()
	case one && a.Is("NODE"):
		if f.known(c, a.Bytes()) {
			c.OK()
		}
	case one && a.Is("IMPORTING"):
		c.Error(fmt.Sprintf("ERR I'm already the owner of hash slot %d", slot))
	case one && a.Is("MIGRATING"):
		if id := a.Bytes(); string(id) != f.node {
			c.Error("ERR I don't know about node " + command.Repeat(id, len(id)))
			return
		}
		fixed(c)
	default:
		c.Error("ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP")
	}
}
