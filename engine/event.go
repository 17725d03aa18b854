package engine

// Keyspace events: what notify-keyspace-events selects and what changes publish.

// EventClass is a set of classes of keyspace events; the comments give their letters in notify-keyspace-events.
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
