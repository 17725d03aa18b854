// A cluster of one node, as the client of a cluster sees it.
package conformance

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/limitkv/limitkv/conformance/peer"
)

func TestClusterClient(t *testing.T) {
	server := peer.LimitKV(t, "--cluster-enabled", "yes", "--databases", "16")
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			c := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{server.Addr}, Protocol: protocol})
			defer c.Close()
			fine := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			fine(c.FlushAll(ctx).Err())
			slots, err := c.ClusterSlots(ctx).Result()
			fine(err)
			if len(slots) != 1 || slots[0].Start != 0 || slots[0].End != 16383 || len(slots[0].Nodes) != 1 || slots[0].Nodes[0].Addr != server.Addr {
				t.Errorf("slots are %+v", slots)
			}
			shards, err := c.ClusterShards(ctx).Result()
			fine(err)
			if len(shards) != 1 || len(shards[0].Nodes) != 1 || net.JoinHostPort(shards[0].Nodes[0].IP, fmt.Sprint(shards[0].Nodes[0].Port)) != server.Addr ||
				shards[0].Nodes[0].ID != slots[0].Nodes[0].ID || shards[0].Nodes[0].Health != "online" {
				t.Errorf("shards are %+v", shards)
			}
			nodes, err := c.ClusterNodes(ctx).Result()
			fine(err)
			if want := slots[0].Nodes[0].ID + " " + server.Addr + "@"; !strings.HasPrefix(nodes, want) {
				t.Errorf("nodes are %q, not %q", nodes, want)
			}

			// Commands for keys of all slots.
			p := c.Pipeline()
			for i := range 500 {
				p.Set(ctx, fmt.Sprint("key", i), i, time.Hour)
			}
			_, err = p.Exec(ctx)
			fine(err)
			for i := range 50 {
				if got, err := c.Get(ctx, fmt.Sprint("key", i)).Int(); err != nil || got != i {
					t.Fatalf("key%d is %d, %v", i, got, err)
				}
			}
			seen := 0
			fine(c.ForEachMaster(ctx, func(ctx context.Context, node *goredis.Client) error {
				for it := node.Scan(ctx, 0, "key*", 100).Iterator(); it.Next(ctx); {
					seen++
				}
				return nil
			}))
			if seen != 500 {
				t.Errorf("%d keys were scanned", seen)
			}
			if err := c.MGet(ctx, "a", "b").Err(); err == nil || !strings.HasPrefix(err.Error(), "CROSSSLOT") {
				t.Errorf("keys of two slots: %v", err)
			}

			// A transaction that watches, a script by its SHA, a blocking command.
			fine(c.Watch(ctx, func(tx *goredis.Tx) error {
				_, err := tx.TxPipelined(ctx, func(p goredis.Pipeliner) error {
					p.Incr(ctx, "{tag}n")
					p.RPush(ctx, "{tag}l", "x")
					return nil
				})
				return err
			}, "{tag}n"))
			sum := goredis.NewScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")
			if n, err := sum.Run(ctx, c, []string{"{tag}n"}, 41).Int(); err != nil || n != 42 {
				t.Errorf("the script: %d, %v", n, err)
			}
			if got, err := c.BLPop(ctx, time.Second, "{tag}l").Result(); err != nil || got[1] != "x" {
				t.Errorf("BLPOP: %v, %v", got, err)
			}

			sub := c.SSubscribe(ctx, "{tag}news")
			defer sub.Close()
			_, err = sub.Receive(ctx)
			fine(err)
			fine(c.SPublish(ctx, "{tag}news", "hello").Err())
			if m, err := sub.ReceiveMessage(ctx); err != nil || m.Payload != "hello" {
				t.Errorf("the message is %v, %v", m, err)
			}
		})
	}
}

// TestClusterAddress: a node says what it is configured to be reached by, and else the address that the client came to.
func TestClusterAddress(t *testing.T) {
	server := peer.LimitKV(t, "--cluster-enabled", "yes")
	c := server.Dial(t)
	_, port, _ := net.SplitHostPort(server.Addr)
	hello := c.Must(t, "HELLO", "2")
	if got := inLine(hello); !strings.Contains(got, `"mode" "cluster"`) {
		t.Errorf("HELLO says %s", got)
	}
	if got := c.Must(t, "INFO", "server").Text; !strings.Contains(got, "redis_mode:cluster") {
		t.Errorf("INFO says %s", got)
	}
	id := c.Must(t, "CLUSTER", "MYID").Text
	for _, step := range []struct{ set, value, endpoint, more string }{
		{"", "", `"127.0.0.1" :` + port, ``},
		{"cluster-announce-hostname", "node.example", `"127.0.0.1" :` + port, `"hostname" "node.example"`},
		{"cluster-preferred-endpoint-type", "hostname", `"node.example" :` + port, `"ip" "127.0.0.1"`},
		{"cluster-announce-ip", "10.1.2.3", `"node.example" :` + port, `"ip" "10.1.2.3"`},
		{"cluster-preferred-endpoint-type", "unknown-endpoint", `$-1 :` + port, `"ip" "10.1.2.3" "hostname" "node.example"`},
		{"cluster-announce-port", "7000", `$-1 :7000`, `"ip" "10.1.2.3" "hostname" "node.example"`},
	} {
		if step.set != "" {
			c.Must(t, "CONFIG", "SET", step.set, step.value)
		}
		want := "[[:0 :16383 [" + step.endpoint + ` "` + id + `" [` + step.more + "]]]]"
		if got := inLine(c.Must(t, "CLUSTER", "SLOTS")); got != want {
			t.Errorf("%s %s\n got %s\nwant %s", step.set, step.value, got, want)
		}
	}
	if got := c.Must(t, "CLUSTER", "NODES").Text; got != id+" 10.1.2.3:7000@17000,node.example myself,master - 0 0 0 connected 0-16383\n" {
		t.Errorf("nodes are %q", got)
	}
}

// inLine is a reply in its notation, in one line and without commas.
func inLine(v peer.Value) string {
	s := strings.Join(strings.Fields(strings.ReplaceAll(v.String(), ",", " ")), " ")
	return strings.NewReplacer("[ ", "[", " ]", "]").Replace(s)
}
