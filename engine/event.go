package engine

// Keyspace events: what notify-keyspace-events selects and what a change
// tells to those who watch or wait.

// EventClass is a set of classes of keyspace events, with the letters of
// notify-keyspace-events.
type EventClass uint32

// The classes of events.
const (
	EventKeyspace   EventClass = 1 << iota // K
	EventKeyevent                          // E
	EventGeneric                           // g
	EventString                            // $
	EventList                              // l
	EventSet                               // s
	EventHash                              // h
	EventZSet                              // z
	EventExpired                           // x
	EventEvicted                           // e
	EventStream                            // t
	EventKeyMiss                           // m
	EventNew                               // n
	EventModule                            // d
	EventLimiter                           // limiters; selected by d, as a module's types are
	EventDelayQueue                        // delay queues; selected by d
	EventLock                              // locks; selected by d
)
