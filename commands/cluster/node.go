package cluster

// What CLUSTER tells clients about the node, and how to reach it.

import (
	"fmt"
	"net/netip"
	"strconv"

	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/hashslot"
)

const (
	lastSlot = hashslot.Count - 1
	// busOffset is how far above the port a node's port for other nodes is.
	busOffset = 10000
)

// reach is how a client reaches the node.
type reach struct {
	ip, host   string
	port       int64 // the TLS port if the client uses TLS
	plain, tls int64 // 0: none
	bus        int64
}

// number is the value of the first of the parameters that is a number other than 0, else 0.
func (f *family) number(names ...string) int64 {
	for _, name := range names {
		if p := f.s.Config.Find(name); p != nil {
			if n, _ := strconv.ParseInt(p.Get(), 10, 64); n != 0 {
				return n
			}
		}
	}
	return 0
}

func (f *family) text(name string) string { return f.s.Config.Find(name).Get() }

// reach finds how the client that asks reaches the node. Redis learns its address from other nodes. There are none here, so
// unless the address is configured it is the one that the client connected to.
func (f *family) reach(c *command.Ctx) reach {
	r := reach{
		ip: f.text("cluster-announce-ip"), host: f.text("cluster-announce-hostname"),
		plain: f.number("cluster-announce-port", "port"), tls: f.number("cluster-announce-tls-port", "tls-port"),
		bus: f.number("cluster-announce-bus-port", "cluster-port"),
	}
	r.port = r.plain
	if conn := c.Session.Conn; conn != nil {
		if at, err := netip.ParseAddrPort(conn.LocalAddr()); err == nil {
			if r.ip == "" {
				r.ip = at.Addr().Unmap().String()
			}
			if int64(at.Port()) == f.number("tls-port") {
				r.port = r.tls
			}
		}
	}
	if r.port == 0 {
		r.port = r.tls
	}
	if r.bus == 0 {
		r.bus = r.port + busOffset
	}
	return r
}

// endpoint replies the address that clients are to use.
func (f *family) endpoint(c *command.Ctx, r reach) {
	switch f.text("cluster-preferred-endpoint-type") {
	case "hostname":
		if r.host == "" {
			c.BulkString("?")
		} else {
			c.BulkString(r.host)
		}
	case "unknown-endpoint":
		c.Null()
	default:
		c.BulkString(r.ip)
	}
}

func (f *family) slots(c *command.Ctx) {
	r := f.reach(c)
	c.Array(1)
	c.Array(3)
	c.Int(0)
	c.Int(lastSlot)
	c.Array(4)
	f.endpoint(c, r)
	c.Int(r.port)
	c.BulkString(f.node)
	var more []string
	preferred := f.text("cluster-preferred-endpoint-type")
	if preferred != "ip" {
		more = append(more, "ip", r.ip)
	}
	if preferred != "hostname" && r.host != "" {
		more = append(more, "hostname", r.host)
	}
	c.Map(len(more) / 2)
	for _, s := range more {
		c.BulkString(s)
	}
}

func (f *family) shards(c *command.Ctx) {
	r := f.reach(c)
	c.Array(1)
	c.Map(2)
	c.BulkString("slots")
	c.Array(2)
	c.Int(0)
	c.Int(lastSlot)
	c.BulkString("nodes")
	c.Array(1)
	fields := 6
	for _, there := range []bool{r.plain != 0, r.tls != 0, r.host != ""} {
		if there {
			fields++
		}
	}
	c.Map(fields)
	c.BulkString("id")
	c.BulkString(f.node)
	if r.plain != 0 {
		c.BulkString("port")
		c.Int(r.plain)
	}
	if r.tls != 0 {
		c.BulkString("tls-port")
		c.Int(r.tls)
	}
	c.BulkString("ip")
	c.BulkString(r.ip)
	c.BulkString("endpoint")
	f.endpoint(c, r)
	if r.host != "" {
		c.BulkString("hostname")
		c.BulkString(r.host)
	}
	c.BulkString("role")
	c.BulkString("master")
	c.BulkString("replication-offset")
	c.Int(0)
	c.BulkString("health")
	c.BulkString("online")
}

func (f *family) nodes(c *command.Ctx) {
	r := f.reach(c)
	host := ""
	if r.host != "" {
		host = "," + r.host
	}
	c.Verbatim("txt", fmt.Sprintf("%s %s:%d@%d%s myself,master - 0 0 %d connected 0-%d\n", f.node, r.ip, r.port, r.bus, host, f.epoch.Load(), lastSlot))
}

func (f *family) info(c *command.Ctx) {
	epoch := f.epoch.Load()
	text := ""
	for _, line := range []struct {
		name  string
		value int64
	}{
		{"slots_assigned", hashslot.Count}, {"slots_ok", hashslot.Count}, {"slots_pfail", 0}, {"slots_fail", 0},
		{"known_nodes", 1}, {"size", 1}, {"current_epoch", epoch}, {"my_epoch", epoch},
		{"stats_messages_sent", 0}, {"stats_messages_received", 0},
	} {
		text += fmt.Sprintf("cluster_%s:%d\r\n", line.name, line.value)
	}
	c.Verbatim("txt", "cluster_state:ok\r\n"+text+"total_cluster_links_buffer_limit_exceeded:0\r\n")
}
