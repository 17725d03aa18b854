package replication

// Full synchronisation: the primary's keys replace those of the server.
//
// With repl-diskless-load disabled the file is stored on disk first, while the old keys are still served; then they are
// removed and the file is loaded. Otherwise the file is loaded while it arrives: into a second keyspace (swapdb), or into this
// one if it is empty (on-empty-db).

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/replication"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/dumpfile"
)

// valkeyVersion is the Valkey version whose files this server reads. To an older version Valkey would not send the deadlines
// of fields.
const valkeyVersion = "9.1.2"

// Settings implements replication.Follower. It first waits until no command holds all keys, since the replica could not apply
// commands meanwhile. In Redis, too, such a command ends first.
func (l *leader) Settings() replication.Settings {
	_ = l.f.s.Hold(func(*command.Ctx) error { return nil }) // the function cannot fail
	c := l.f.s.Config
	number := func(name string) int {
		n, _ := strconv.Atoi(c.Value(name)) // the parameter is a number
		return n
	}
	s := replication.Settings{
		User: c.Value("masteruser"), Password: c.Value("masterauth"),
		Port: number("port"), IP: c.Value("replica-announce-ip"), Capabilities: []string{"limitkv"}, Version: valkeyVersion,
		Timeout: l.Timeout(),
	}
	secure := c.Value("tls-replication") == "yes"
	if secure || s.Port == 0 {
		if port := number("tls-port"); port != 0 {
			s.Port = port
		}
	}
	if port := number("replica-announce-port"); port != 0 {
		s.Port = port
	}
	at := net.JoinHostPort(l.host, strconv.Itoa(l.port))
	s.Dial = func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		if from := c.Value("bind-source-addr"); from != "" {
			d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
		}
		conn, err := d.DialContext(ctx, "tcp", at)
		if err != nil || !secure {
			return conn, err
		}
		config, err := l.f.s.Host.ClientTLS()
		if err != nil {
			_ = conn.Close()
			return nil, err
		}
		over := tls.Client(conn, config)
		if err := over.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return over, nil
	}
	return s
}

// Timeout implements replication.Follower.
func (l *leader) Timeout() time.Duration {
	seconds, _ := strconv.Atoi(l.f.s.Config.Value("repl-timeout")) // the parameter is a number
	return time.Duration(seconds) * time.Second
}

// left returns why a file is not read further: the primary is no longer followed.
func (l *leader) left() error {
	if l.sess.Killed.Load() {
		return errNotFollowed
	}
	return nil
}

// Load implements replication.Follower.
func (l *leader) Load(file *replication.File, id string, offset int64) error {
	s := l.f.s
	from, size := io.Reader(file), max(file.Size, 0)
	ks := s.Keyspace
	beside := s.Config.Value("repl-diskless-load") == "swapdb"
	switch {
	case beside:
		ks = s.Keyspace.Sibling()
		ks.Leave(true)
		defer ks.Retire()
	case s.Config.Value("repl-diskless-load") == "on-empty-db" && l.empty():
	default:
		spool, err := l.spool(file)
		if err != nil {
			return err
		}
		defer spool.remove()
		from, size = io.NewSectionReader(spool.file, 0, spool.size), spool.size
	}
	began := engine.Monotonic()
	resume, err := l.clear(beside, id)
	if err != nil {
		return err
	}
	defer resume()
	defer s.Loading.End()
	s.Logf('n', "MASTER <-> REPLICA sync: Loading DB in memory")
	s.Loading.Expect(size)
	whole, err := dumpfile.Read(s, ks, s.Loading.Reader(from, l.left), size, 0,
		dumpfile.Told{Entering: func(keys int) { l.f.n.files.SlowLoad(keys, l.left) }})
	if err == nil {
		_, err = io.Copy(io.Discard, from) // read what is between the file's end and the mark
	}
	if err != nil {
		if !beside {
			_ = s.Hold(func(c *command.Ctx) error { l.empties(c); return nil })
		}
		return fmt.Errorf("Failed trying to load the MASTER synchronization DB, check server logs: %w", err)
	}
	err = s.Hold(func(c *command.Ctx) error {
		if err := l.left(); err != nil {
			return err
		}
		if beside {
			s.Logf('n', "MASTER <-> REPLICA sync: Swapping active DB with loaded DB")
			c.Told = true
			l.letGo(c, true)
			c.Take(ks)
			c.NoEffect() // the next effects belong to another journal
		}
		if err := whole.Enter(c, true, true); err != nil {
			return err
		}
		l.adopt(replication.Place{ID: id, Offset: offset, Selected: whole.Selected})
		return nil
	})
	if err != nil {
		return err
	}
	s.Logf('n', "DB loaded from the master: %.3f seconds, keys loaded: %d", float64(engine.Monotonic()-began)/1e6, s.LoadedKeys.Load())
	s.Logf('n', "MASTER <-> REPLICA sync: Finished with success")
	return nil
}

// adopt sets the position in the primary's stream that the keys now have. The caller holds all locks.
func (l *leader) adopt(at replication.Place) {
	l.f.n.position.Adopt(at)
	l.f.n.dropReplicas()
	l.begin()
	l.sess.SetDB(at.Selected)
}

// empty tells whether there are no keys.
func (l *leader) empty() bool {
	none := true
	_ = l.f.s.Hold(func(c *command.Ctx) error {
		for c.DB = range c.KS.Databases() {
			none = none && c.Count() == 0
		}
		return nil
	})
	return none
}

// clear begins to load. It removes the old keys, unless beside is set; then clients may read them meanwhile if they belong to
// the same stream as the new ones. resume turns the log on again.
func (l *leader) clear(beside bool, id string) (resume func(), err error) {
	s := l.f.s
	resume = l.f.n.files.Suspend()
	err = s.Hold(func(c *command.Ctx) error {
		if err := l.left(); err != nil {
			return err
		}
		s.Loading.Begin(c.Now, beside && l.f.n.position.Same(id))
		if !beside {
			s.Logf('n', "MASTER <-> REPLICA sync: Flushing old data")
			l.f.n.position.Lost()
			l.f.n.dropReplicas()
			l.empties(c)
		}
		return nil
	})
	if err != nil {
		resume()
	}
	return resume, err
}

// empties removes all keys and functions. The caller holds all locks.
func (l *leader) empties(c *command.Ctx) {
	c.Told = true
	l.letGo(c, l.f.s.Config.Value("replica-lazy-flush") == "yes")
	c.FlushAll()
	c.NoEffect() // the next effects belong to another journal
	c.Worker = l.f.s.Workers.Get(l.f.s)
	defer l.f.s.Workers.Put(c.Worker)
	_ = l.f.s.Functions.LoadCode(c, nil, true, true) // cannot fail without code
}

// letGo counts the removed keys for INFO. lazy tells whether Redis would free them on another thread, as it always does for
// swapdb; here the garbage collector frees them. The caller holds all locks.
func (l *leader) letGo(c *command.Ctx, lazy bool) {
	n := 0
	defer func(db int) { c.DB = db }(c.DB)
	for c.DB = range c.KS.Databases() {
		n += c.Count()
	}
	switch {
	case n == 0:
	case lazy:
		l.f.s.LetGo(n, command.FreedPieces)
	default:
		l.f.s.LetGo(0, command.FreedPieces)
	}
}

// spooled is a temporary file with the primary's snapshot.
type spooled struct {
	file *os.File
	size int64
}

func (s *spooled) remove() {
	_ = s.file.Close()
	_ = os.Remove(s.file.Name()) // harmless if it stays: the next file has another name
}

// spool writes the primary's file to disk.
func (l *leader) spool(from *replication.File) (*spooled, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("temp-%d.%d.rdb", l.f.s.Keyspace.Clock.Now()/1e6, os.Getpid())
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("Opening the temp file needed for MASTER <-> REPLICA synchronization: %w", err)
	}
	s := &spooled{file: file}
	buf := make([]byte, 256<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := file.Write(buf[:n]); err != nil {
				s.remove()
				return nil, fmt.Errorf("Write error or short write writing to the DB dump file needed for MASTER <-> REPLICA synchronization: %w", err)
			}
			s.size += int64(n)
		}
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			s.remove()
			return nil, fmt.Errorf("I/O error trying to sync with MASTER: %w", err)
		}
	}
}
