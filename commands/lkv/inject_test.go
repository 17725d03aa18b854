// Faults and the log of what was received, over the wire.

package lkv_test

import (
	"fmt"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

func TestFault(t *testing.T) {
	s := livetest.Start(t)
	admin, c := s.Client(), s.Client()
	for _, step := range []struct {
		c          *livetest.Client
		line, want string
	}{
		{admin, "LKV.FAULT ADD get 2 ERROR LOADING", "1"},
		{admin, "LKV.FAULT ADD set|none 1 DISCONNECT", "2"},
		{admin, "LKV.FAULT ADD z* 1 ERROR ERR", "3"},
		{c, "SET k v", "OK"},
		{c, "GET k", "-LOADING"},
		{c, "get k", "-LOADING"},
		{c, "GET k", "v"},
		{c, "ZCARD z", "-ERR"},
		{c, "ZCARD z", "0"},
		{admin, "LKV.FAULT LIST", "[[id 2 pattern set|none left 1 disconnect ]]"},
		{admin, "LKV.FAULT CLEAR", "1"},
		{admin, "LKV.FAULT LIST", "[]"},
		// A container's name is for all its subcommands, name|subcommand for one.
		{admin, "LKV.FAULT ADD config 1 ERROR ERR", "4"},
		{c, "CONFIG GET port", "-ERR"},
		{admin, "LKV.FAULT ADD config|set 1 ERROR ERR", "5"},
		{c, "CONFIG GET maxclients", "[maxclients 10000]"},
		{admin, "LKV.FAULT CLEAR", "1"},
		// In a transaction it works like any error: the transaction is discarded.
		{admin, "LKV.FAULT ADD incr 1 ERROR ERR", "6"},
		{c, "MULTI", "OK"},
		{c, "INCR n", "-ERR"},
		{c, "EXEC", "-EXECABORT Transaction discarded because of previous errors."},
		{admin, "LKV.FAULT ADD nosuch 1 ERROR MINE", "7"},
		{c, "nosuch", "-MINE"},
		// Bad calls change nothing.
		{admin, "LKV.FAULT ADD get 0 DISCONNECT", "-ERR the count is out of range, it can be 1 to 1000000000"},
		{admin, "LKV.FAULT ADD get 1 DELAY 0", "-ERR the delay is out of range, it can be 1 to 86400000 ms"},
		{admin, "LKV.FAULT ADD get 1 DELAY 1 more", "-ERR syntax error"},
		{admin, "LKV.FAULT ADD get 1 EXPLODE", "-ERR syntax error"},
		{admin, "LKV.FAULT ADD get 1", "-ERR wrong number of arguments for 'lkv.fault|add' command"},
		{admin, "LKV.FAULT LIST", "[]"},
	} {
		if got := step.c.Line(step.line); got != step.want {
			t.Errorf("%s: %s, want %s", step.line, got, step.want)
		}
	}
	admin.Want("-ERR the text of an error is one line", "LKV.FAULT", "ADD", "get", 1, "ERROR", "a\r\nb")
	// A pattern with a blank is for the whole line.
	admin.Want("8", "LKV.FAULT", "ADD", "GET user:*", 1, "ERROR", "ERR it broke")
	c.Want("v", "GET", "k")
	c.Want("-ERR it broke", "GET", "user:7")
	// A delay uses the server's clock, and also delays what the client sends after it.
	admin.Want("9", "LKV.FAULT", "ADD", "ping", 1, "DELAY", 500)
	c.Send("PING")
	c.Send("ECHO", "later")
	c.Silent()
	s.Advance(499)
	c.Silent()
	s.Advance(1)
	if a, b := c.Read(), c.Read(); a != "PONG" || b != "later" {
		t.Errorf("after the delay: %s %s", a, b)
	}
	admin.Want("10", "LKV.FAULT", "ADD", "get", 1, "DISCONNECT")
	c.Send("GET", "k")
	if !c.Ended() {
		t.Error("the connection did not end")
	}
	admin.Want("v", "GET", "k")
}

func TestFaultAfterDisconnect(t *testing.T) {
	s := livetest.Start(t)
	admin, c := s.Client(), s.Client()
	admin.Want("1", "LKV.FAULT", "ADD", "set", 1, "DELAY", 100)
	c.Send("SET", "k", "v")
	c.Silent()
	c.Close()
	s.Advance(100)
	admin.Want("PONG", "PING") // the client that disconnected did not stop the server
}

func TestLog(t *testing.T) {
	s := livetest.Start(t)
	admin, c := s.Client(), s.Client()
	id := c.Do("CLIENT", "ID")
	c.Want("OK", "SET", "before", 1)
	admin.Want("OK", "LKV.LOG", "ON")
	c.Want("OK", "SET", "k", "v")
	c.Want("v", "GET", "k")
	c.Want("-ERR unknown command 'nosuch', with args beginning with: 'x' ", "nosuch", "x")
	c.Want("-WRONGPASS invalid username-password pair or user is disabled.", "AUTH", "someone", "secret")
	admin.Want("PONG", "PING")
	now := s.Now()
	admin.Want(fmt.Sprintf("[[%d %s 0 [SET k v]] [%d %s 0 [GET k]]]", now, id, now, id), "LKV.LOG", "GET", "COUNT", 2)
	admin.Want(fmt.Sprintf("[[%d %s 0 [GET k]]]", now, id), "LKV.LOG", "GET", "MATCH", "get")
	admin.Want(fmt.Sprintf("[[%d %s 0 [SET k v]]]", now, id), "LKV.LOG", "GET", "MATCH", "SET k *")
	admin.Want("4", "LKV.LOG", "COUNT", "CLIENT", id)
	admin.Want("5", "LKV.LOG", "COUNT")
	if got := admin.Do("LKV.LOG", "GET", "MATCH", "auth"); got != fmt.Sprintf("[[%d %s 0 [AUTH (redacted) (redacted)]]]", now, id) {
		t.Errorf("AUTH is kept as %s", got)
	}
	admin.Want("OK", "LKV.LOG", "OFF")
	c.Want("v", "GET", "k")
	admin.Want("5", "LKV.LOG", "COUNT")
	admin.Want("5", "LKV.LOG", "RESET")
	admin.Want("[]", "LKV.LOG", "GET")
	admin.Want("-ERR syntax error", "LKV.LOG", "COUNT", "COUNT", 1)
	admin.Want("-ERR COUNT must be positive", "LKV.LOG", "GET", "COUNT", 0)
}

// TestLogIsBounded checks that a log that nobody reads keeps the newest entries.
func TestLogIsBounded(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "LKV.LOG", "ON")
	var batch []byte
	const sent = 120_000
	for i := range sent {
		batch = livetest.Append(batch, "ECHO", i)
		if i%1000 == 999 {
			c.Pipeline(batch, 1000)
			batch = batch[:0]
		}
	}
	c.Want("100000", "LKV.LOG", "COUNT")
	c.Want("1", "LKV.LOG", "COUNT", "MATCH", "ECHO 119999")
	c.Want("0", "LKV.LOG", "COUNT", "MATCH", "ECHO 19999")
	c.Want(fmt.Sprint(sent), "LKV.LOG", "RESET")
}
