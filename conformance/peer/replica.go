// A replica that keeps nothing: it reads what a real Redis sends to its replicas, which are the effects of commands.

package peer

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Replica is attached to a Redis. It is not safe for use by several goroutines.
type Replica struct {
	conn   *Conn
	offset int64 // how far the stream was read
}

// Attach makes a replica of a Redis and reads past its keys. The replica does not say that it can read a file without a
// length, so Redis begins at once with one that has it.
func Attach(addr string) (*Replica, error) {
	conn, err := Dial(addr)
	if err != nil {
		return nil, err
	}
	r := &Replica{conn: conn}
	if err := r.attach(); err != nil {
		conn.Close()
		return nil, fmt.Errorf("replica: %w", err)
	}
	return r, nil
}

func (r *Replica) attach() error {
	for _, args := range [][]string{{"REPLCONF", "listening-port", "1"}, {"REPLCONF", "capa", "psync2"}, {"PSYNC", "?", "-1"}} {
		v, err := r.conn.Do(args...)
		if err != nil || v.Kind != '+' {
			return fmt.Errorf("%v: %v %v", args, v, err)
		}
		if words := strings.Fields(v.Text); words[0] == "FULLRESYNC" {
			if r.offset, err = strconv.ParseInt(words[len(words)-1], 10, 64); err != nil {
				return err
			}
		}
	}
	_ = r.conn.SetReadDeadline(time.Now().Add(ReplyTimeout))
	for {
		line, err := r.conn.r.ReadString('\n')
		if err != nil {
			return err
		}
		if line == "\n" {
			continue // Redis is still writing the file, and shows that it is alive.
		}
		n, err := strconv.ParseInt(strings.Trim(line, "$\r\n"), 10, 64)
		if err != nil {
			return fmt.Errorf("the length of the file: %q", line)
		}
		_, err = io.CopyN(io.Discard, r.conn.r, n)
		return err
	}
}

// Close ends the replica.
func (r *Replica) Close() { r.conn.Close() }

// Take reads what was sent up to where Redis, asked by a connection of its own, says that its stream ends now. What keeps
// the replica alive is left out.
func (r *Replica) Take(admin *Conn) (effects [][]string, err error) {
	v, err := admin.Do("INFO", "replication")
	if err != nil {
		return nil, err
	}
	end, err := strconv.ParseInt(Field(v.Text, "master_repl_offset"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("INFO replication: %w", err)
	}
	for r.offset < end {
		v, err := r.conn.Receive()
		if err != nil {
			return nil, fmt.Errorf("the stream of effects: %w", err)
		}
		args := Words(v)
		r.offset += int64(len(AppendCommand(nil, args...)))
		if args[0] != "PING" && args[0] != "REPLCONF" {
			effects = append(effects, args)
		}
	}
	if r.offset > end {
		return nil, fmt.Errorf("the stream was read up to %d, Redis is at %d", r.offset, end)
	}
	return effects, nil
}

// Words are the texts of an array's elements.
func Words(v Value) []string {
	args := make([]string, len(v.Items))
	for i, item := range v.Items {
		args[i] = item.Text
	}
	return args
}
