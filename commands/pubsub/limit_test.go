package pubsub_test

// Subscribers have their own limits for unread messages.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

// TestUnreadMessages: a subscriber that never reads is dropped at the limit of its class, whatever it listens to; all other
// clients continue.
func TestUnreadMessages(t *testing.T) {
	for _, how := range []string{"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"} {
		t.Run(how, func(t *testing.T) {
			s := livetest.Start(t)
			admin, reader, deaf, left := s.Client(), s.Client(), s.Client(), s.Client()
			admin.Want("OK", "CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 0 0")
			reader.Want("[subscribe news 1]", "SUBSCRIBE", "news")
			deaf.Do(how, "news")
			// A client that no longer listens is of the normal class again.
			left.Do("SUBSCRIBE", "news")
			left.Do("UNSUBSCRIBE")

			publish := "PUBLISH"
			if how == "SSUBSCRIBE" {
				publish = "SPUBLISH"
				reader.Want("[ssubscribe news 1]", "SSUBSCRIBE", "news")
			}
			text := strings.Repeat("x", 100_000)
			const most = 1000 // the system's own buffers take a few MB
			n := 0
			for ; n < most && dropped(admin.Do("INFO", "stats")) == 0; n++ {
				admin.Do(publish, "news", text)
				if got := reader.Read(); !strings.HasSuffix(got, " news "+text+"]") {
					t.Fatalf("message %d is %.60s of %d bytes", n, got, len(got))
				}
			}
			if n < 10 || n == most {
				t.Errorf("the subscriber was dropped after %d messages", n)
			}
			if !deaf.Ended() {
				t.Error("the subscriber is still connected")
			}
			for end := time.Now().Add(5 * time.Second); admin.Do(publish, "news", "last") != "1"; {
				if time.Now().After(end) {
					t.Fatal("the subscriber still listens")
				}
				reader.Read()
			}
			if got := reader.Read(); !strings.HasSuffix(got, "last]") {
				t.Errorf("the last message is %.60s", got)
			}
			// Its reply is far above the limit of subscribers.
			admin.Want("OK", "SET", "large", strings.Repeat("y", 20_000_000))
			if got := left.Do("GET", "large"); len(got) != 20_000_000 {
				t.Errorf("%d bytes", len(got))
			}
			if got := dropped(admin.Do("INFO", "stats")); got != 1 {
				t.Errorf("%d clients were dropped", got)
			}
		})
	}
}

// dropped is INFO's count of clients that were dropped because of unread output.
func dropped(info string) (n int) {
	const name = "client_output_buffer_limit_disconnections:"
	_, after, _ := strings.Cut(info, name)
	fmt.Sscan(after, &n)
	return n
}

// A client that turned replies off with CLIENT REPLY still gets subscriptions and messages.
func TestSilentSubscriber(t *testing.T) {
	s := livetest.Start(t)
	c, other := s.Client(), s.Client()
	c.Send("CLIENT", "REPLY", "OFF")
	c.Want("[subscribe ch 1]", "SUBSCRIBE", "ch")
	c.Send("PING")
	other.Want("1", "PUBLISH", "ch", "hello")
	if got := c.Read(); got != "[message ch hello]" {
		t.Error(got)
	}
	c.Want("[unsubscribe ch 0]", "UNSUBSCRIBE", "ch")
	c.Send("CLIENT", "REPLY", "SKIP")
	c.Send("CLIENT", "REPLY", "ON")
	if got := c.Do("PING"); got != "OK" {
		t.Error(got)
	}
}
