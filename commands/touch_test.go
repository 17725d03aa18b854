package commands_test

// Pipelines of several connections on the same keys, which are added and removed, in databases that are emptied and swapped:
// touching keys in advance without locks must not disturb anything (the race detector checks that), and replies stay right.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/limitkv/limitkv/resp"
)

func TestPipelinesSideBySide(t *testing.T) {
	s := serve(t)
	var all sync.WaitGroup
	deadline := time.Now().Add(300 * time.Millisecond)
	for n := range 4 {
		all.Go(func() {
			c := resp.NewMemory(s.Server, s.Keyspace.Clock.Now) // a goroutine of its own
			r := rand.New(rand.NewPCG(1, uint64(n)))
			hits, turns := 0, 0
			// On a busy machine, time alone does not measure work.
			for ; time.Now().Before(deadline) || hits == 0 && turns < 1000; turns++ {
				var b []byte
				const commands = 40
				for range commands {
					key := fmt.Sprint("key:", r.IntN(3000))
					switch r.IntN(48) {
					case 40, 41:
						b = request(b, "SADD", "set"+key[:5], key)
					case 42:
						b = request(b, "SPOP", "set"+key[:5])
					case 43, 44:
						b = request(b, "RPUSH", "list"+key[:5], key)
					case 45:
						b = request(b, "LPOP", "list"+key[:5])
					case 46, 47:
						b = request(b, "ZADD", "zset"+key[:5], 1, key)
					case 0:
						b = request(b, "SWAPDB", 0, 1)
					case 1:
						if r.IntN(20) == 0 {
							b = request(b, "FLUSHDB")
						} else {
							b = request(b, "RENAME", key, key)
						}
					case 2, 3, 4:
						b = request(b, "DEL", key)
					case 5, 6, 7, 8:
						b = request(b, "HSET", "hash"+key, "field", key)
					case 9, 10, 11:
						b = request(b, "HGET", "hash"+key, "field")
					case 12, 13:
						b = request(b, "RENAME", "hash"+key, "hash"+key+"2")
					case 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25:
						b = request(b, "GET", key)
					default:
						b = request(b, "SET", key, key)
					}
				}
				reply := c.Feed(b)
				rd := resp.NewReader(reply)
				for i := range commands {
					v, err := rd.Next()
					if err != nil {
						t.Errorf("reply %d of %q: %v", i, reply, err)
						return
					}
					if v.Kind == resp.KindBulk && !v.Null {
						hits++
						if !bytes.HasPrefix(v.Data, []byte("key:")) {
							t.Errorf("read %q", v.Data)
						}
					}
				}
				if !rd.Done() {
					t.Errorf("more replies than commands: %q", reply)
				}
			}
			if hits == 0 {
				t.Errorf("%d pipelines and nothing found: the test did no work", turns)
			}
		})
	}
	all.Wait()
}
