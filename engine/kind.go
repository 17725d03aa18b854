package engine

// The types of values.

// Kind is the type of a value.
type Kind uint8

// The kinds of values. A missing key has KindNone.
const (
	KindNone Kind = iota
	KindString
	KindHash
	KindZSet
	KindList
	KindSet
	KindStream
	KindLimiter
	KindDelayQueue
	KindLock
	kindCount
)

var kindNames = [kindCount]string{"none", "string", "hash", "zset", "list", "set", "stream", "ratelimit", "delayqueue", "lock"}

// String is the name that TYPE replies.
func (k Kind) String() string { return kindNames[k] }

// Plain tells whether Redis has the type, too.
func (k Kind) Plain() bool { return k <= KindStream }

// KindByName finds a kind by the name that TYPE replies; ok is false for
// names of no kind.
func KindByName(name string) (k Kind, ok bool) {
	for i, n := range kindNames {
		if n == name && Kind(i) != KindNone {
			return Kind(i), true
		}
	}
	return KindNone, false
}
