package resp

// What a command costs from socket to socket, the client included, which is as cheap as it can be: raw writes and reads of
// a known size. For the server alone, run redis-benchmark against it and read /proc/<pid>/schedstat.

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
)

func BenchmarkServer(b *testing.B) {
	for _, kind := range []struct {
		name string
		o    Options
	}{{"loops", Options{Loops: 2}}, {"goroutines", Options{Goroutines: true}}} {
		for _, pipeline := range []int{1, 16, 256} {
			b.Run(fmt.Sprintf("%s/pipeline=%d", kind.name, pipeline), func(b *testing.B) {
				_, addr := start(b, &echo{}, kind.o)
				const conns = 50
				batch := bytes.Repeat(command("PING"), pipeline)
				var all sync.WaitGroup
				var clients []net.Conn
				for range conns {
					nc, err := net.Dial("tcp", addr)
					if err != nil {
						b.Fatal(err)
					}
					clients = append(clients, nc)
				}
				rounds := max(b.N/conns/pipeline, 1)
				b.ResetTimer()
				for _, nc := range clients {
					all.Go(func() {
						defer nc.Close()
						reply := make([]byte, 7*pipeline)
						for range rounds {
							if _, err := nc.Write(batch); err != nil {
								b.Error(err)
								return
							}
							if _, err := io.ReadFull(nc, reply); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				all.Wait()
			})
		}
	}
}

// BenchmarkTurn is a turn of a connection without its system calls.
func BenchmarkTurn(b *testing.B) {
	for _, pipeline := range []int{1, 16} {
		b.Run(fmt.Sprintf("pipeline=%d", pipeline), func(b *testing.B) {
			m := NewMemory(nullHandler{}, func() int64 { return 1 })
			batch := bytes.Repeat(command("GET", "key:000000000001"), pipeline)
			b.ReportAllocs()
			for b.Loop() {
				m.Feed(batch)
			}
		})
	}
}

// nullHandler answers everything with OK.
type nullHandler struct{}

func (nullHandler) Opened(*Conn) {}
func (nullHandler) Closed(*Conn) {}
func (nullHandler) Serve(c *Conn, batch []Command) int {
	for range batch {
		c.Out.OK()
	}
	return len(batch)
}
