package main

// The cluster clients of go-redis and rueidis, against a cluster of one node that has all slots.

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

func clusterChecks() {
	c := client{"go-redis", "github.com/redis/go-redis/v9"}
	for _, protocol := range []int{2, 3} {
		c.check("features", fmt.Sprintf("ClusterClient: slots, pipelines over them, scripts, sharded pub/sub, RESP%d", protocol), func() error {
			r := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{clustered}, Protocol: protocol})
			defer r.Close()
			slots, err := r.ClusterSlots(ctx).Result()
			if err != nil {
				return err
			}
			cmds, err := r.Pipelined(ctx, func(p redis.Pipeliner) error {
				for i := range 200 {
					p.Set(ctx, fmt.Sprint("key:", i), i, 0)
				}
				return nil
			})
			if err != nil {
				return err
			}
			masters := 0
			err = r.ForEachMaster(ctx, func(ctx context.Context, m *redis.Client) error { masters++; return m.Ping(ctx).Err() })
			if err != nil {
				return err
			}
			_, err = r.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.Set(ctx, "{tag}a", 1, 0)
				p.Incr(ctx, "{tag}a")
				return nil
			})
			if err != nil {
				return err
			}
			cross := r.MGet(ctx, "a", "b").Err()
			sum, err := redis.NewScript("return redis.call('INCRBY', KEYS[1], ARGV[1])").Run(ctx, r, []string{"{tag}a"}, 5).Int()
			if err != nil {
				return err
			}
			err = r.Watch(ctx, func(tx *redis.Tx) error {
				_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Set(ctx, "{tag}a", 9, 0).Err() })
				return err
			}, "{tag}a")
			if err != nil {
				return err
			}
			sub := r.SSubscribe(ctx, "shard")
			defer sub.Close()
			if _, err := sub.Receive(ctx); err != nil {
				return err
			}
			r.SPublish(ctx, "shard", "hello")
			message := (<-sub.Channel()).Payload
			return first(want("slots", fmt.Sprint(slots[0].Start, slots[0].End), "0 16383"), want("pipelined", len(cmds), 200), want("masters", masters, 1),
				want("sum", sum, 7), want("message", message, "hello"), want("keys of two slots are refused", cross != nil && strings.HasPrefix(cross.Error(), "CROSSSLOT "), true))
		})
	}
	c = client{"rueidis", "github.com/redis/rueidis"}
	c.check("features", "cluster client: MGET over slots, caching, sharded pub/sub", func() error {
		r, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{clustered}, ShuffleInit: true})
		if err != nil {
			return err
		}
		defer r.Close()
		if mode := r.Mode(); mode != rueidis.ClientModeCluster {
			return fmt.Errorf("the client takes the server for %v", mode)
		}
		keys, values := []string{}, map[string]string{}
		for i := range 100 {
			keys = append(keys, fmt.Sprint("rueidis:", i))
			values[keys[i]] = fmt.Sprint(i)
		}
		for key, err := range rueidis.MSet(r, ctx, values) {
			if err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
		got, err := rueidis.MGet(r, ctx, keys)
		if err != nil {
			return err
		}
		last := got[keys[99]]
		v, err := last.ToString()
		if err != nil {
			return err
		}
		r.DoCache(ctx, r.B().Get().Key(keys[0]).Cache(), time.Minute)
		hit := r.DoCache(ctx, r.B().Get().Key(keys[0]).Cache(), time.Minute).IsCacheHit()
		told, stop := context.WithTimeout(ctx, 5*time.Second)
		defer stop()
		go func() {
			for ; told.Err() == nil; time.Sleep(20 * time.Millisecond) {
				r.Do(ctx, r.B().Spublish().Channel("rshard").Message("hello").Build())
			}
		}()
		message := ""
		r.Receive(told, r.B().Ssubscribe().Channel("rshard").Build(), func(m rueidis.PubSubMessage) { message = m.Message; stop() })
		return first(want("value", v, "99"), want("hit", hit, true), want("message", message, "hello"))
	})
}
