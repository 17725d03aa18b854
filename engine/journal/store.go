package journal

// Store stores the log and says up to which place it is safe. The files of one machine are a store ([Files.Start]). So
// can be a group of machines, which confirms what a majority of their disks have. Only the log calls it, so that one
// object decides what is confirmed. A store that drops unconfirmed data calls Log.Truncated. Methods may be called from
// any goroutine; methods that return no error do not wait for a disk.
type Store interface {
	// A store receives effects once it has attached itself (Log.Attach).
	Sink
	// Holds reports whether replies may have to wait for Confirmed.
	Holds() bool
	// Confirmed is the place up to which replies may leave, MaxLSN while none has to wait. It decreases only when Holds
	// becomes true. The store calls Log.Release when it may have changed.
	Confirmed() LSN
	// Refusal is the error for replies that cannot be confirmed for now, "" if they only have to wait.
	Refusal() string
	// Durable is the place up to which the log is on this machine's disk.
	Durable() LSN
	// Round is called by an event loop at the end of each round; it may write the log. It returns in how many
	// microseconds it wants to be called again if nothing else happens, 0 if it does not.
	Round() (again int64)
	// Rotate begins a snapshot of everything before the present end of the log. Once committed, the snapshot is the new
	// base, with which the log begins. Rotate does no I/O: it may be called under the locks of all shards.
	Rotate() (*Cut, error)
}

// Keep makes s the store that decides what is confirmed. It replaces the store before.
func (l *Log) Keep(s Store) {
	l.store.Store(&s)
	l.Release()
}

// Drop ends what Keep began, unless another store has replaced s. Without a store everything is confirmed.
func (l *Log) Drop(s Store) {
	if was := l.store.Load(); was != nil && *was == s {
		l.store.CompareAndSwap(was, nil)
	}
	l.Release()
}

// Synced reports whether the log up to a place is on this machine's disk, and whether there is a store.
func (l *Log) Synced(at LSN) (synced, kept bool) {
	s := l.Kept()
	return s != nil && s.Durable() >= at, s != nil
}

// Round calls Round of the store, if there is one.
func (l *Log) Round() (again int64) {
	if s := l.Kept(); s != nil {
		return s.Round()
	}
	return 0
}
