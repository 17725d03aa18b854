package resp

// The cost of a command from socket to socket, including the client, which is as cheap as possible: raw writes and reads of
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
				replies := make([][]byte, conns)
				clients := make([]net.Conn, conns)
				ask := func(i int) {
					if _, err := clients[i].Write(batch); err != nil {
						b.Error(err)
					} else if _, err := io.ReadFull(clients[i], replies[i]); err != nil {
						b.Error(err)
					}
				}
				for i := range clients {
					nc, err := net.Dial("tcp", addr)
					if err != nil {
						b.Fatal(err)
					}
					defer nc.Close()
					clients[i], replies[i] = nc, make([]byte, 7*pipeline)
					ask(i) // it is accepted, and has its buffers
				}
				rounds := max(b.N/conns/pipeline, 1)
				b.ResetTimer()
				for i := range clients {
					all.Go(func() {
						for range rounds {
							ask(i)
						}
					})
				}
				all.Wait()
				b.StopTimer()
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
