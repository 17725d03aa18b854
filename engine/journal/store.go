package journal

// Store keeps the log, and says how far what it keeps is safe. The files of one machine do ([Files.Start]); a group of
// machines can, which confirms what most of its disks have. Only the log asks it, so that what is confirmed has one owner.
// A store that takes back what it has not confirmed says so (Log.Truncated). Methods may be called from any goroutine; those without an error wait for no disk.
type Store interface {
	// A store is sent what is kept once it has attached itself (Log.Attach).
	Sink
	// Holds says whether replies may have to wait for Confirmed.
	Holds() bool
	// Confirmed is the place up to which replies may leave, MaxLSN while none has to wait. It moves back only where Holds
	// begins. Log.Release is called when it may have changed.
	Confirmed() LSN
	// Refusal is the error for replies that cannot be confirmed for now, "" while that is a matter of time.
	Refusal() string
	// Durable is the place up to which this machine's disk has the log.
	Durable() LSN
	// Round is called by an event loop at the end of each round, in which the log may be written. It returns in how many
	// microseconds it wants to be called again where nothing else happens, 0 for not at all.
	Round() (again int64)
	// Rotate begins a snapshot: a base of all in front of the end of the log as it is now, with which the log begins once
	// it is committed. It does no I/O: it may be called under the locks of all shards.
	Rotate() (*Cut, error)
}

// Keep has a store say from now on what is confirmed, in the place of another one.
func (l *Log) Keep(s Store) {
	l.store.Store(&s)
	l.Release()
}

// Drop ends what Keep began, unless another store has taken its place: all is confirmed then.
func (l *Log) Drop(s Store) {
	if was := l.store.Load(); was != nil && *was == s {
		l.store.CompareAndSwap(was, nil)
	}
	l.Release()
}

// Synced tells whether all up to a place is on this machine's disk, and whether there is a store.
func (l *Log) Synced(at LSN) (synced, kept bool) {
	s := l.Kept()
	return s != nil && s.Durable() >= at, s != nil
}

// Round is that of the store.
func (l *Log) Round() (again int64) {
	if s := l.Kept(); s != nil {
		return s.Round()
	}
	return 0
}
