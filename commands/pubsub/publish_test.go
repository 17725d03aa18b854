package pubsub_test

// In which order a client gets the messages that it caused.

import (
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

// TestOwnMessages: a client that publishes to a channel that it listens to gets the messages after the reply, each command's
// before the next command's reply.
func TestOwnMessages(t *testing.T) {
	c := livetest.Start(t).Client()
	c.Do("HELLO", 3)
	c.Do("SUBSCRIBE", "news")
	c.Do("PSUBSCRIBE", "n*")
	c.Send("PUBLISH", "news", "one")
	c.Send("PING")
	c.Send("EVAL", "return redis.call('PUBLISH', 'news', 'two')", 0)
	for i, want := range []string{"2", "[message news one]", "[pmessage n* news one]", "PONG", "2", "[message news two]", "[pmessage n* news two]"} {
		if got := c.Read(); got != want {
			t.Errorf("reply %d is %s, want %s", i, got, want)
		}
	}
}

// TestNewKeyEvent: new comes before what made the key, and only then.
func TestNewKeyEvent(t *testing.T) {
	s := livetest.Start(t)
	c, listener := s.Client(), s.Client()
	c.Want("OK", "CONFIG", "SET", "notify-keyspace-events", "KAn")
	listener.Do("PSUBSCRIBE", "*")
	c.Do("SET", "a", 1)
	c.Do("SET", "a", 2)
	c.Do("LPUSH", "b", 1)
	c.Do("RENAME", "b", "c")
	c.Do("RENAME", "a", "c")
	for i, want := range []string{"a new", "a set", "a set", "b new", "b lpush", "c new", "b rename_from", "c rename_to",
		"c new", "a rename_from", "c rename_to"} {
		want = "[pmessage * __keyspace@0__:" + want + "]"
		if got := listener.Read(); got != want {
			t.Errorf("event %d is %s, want %s", i, got, want)
		}
	}
}
