// INCREX, as Redis 8.8 documents it.
package ratelimit_test

import (
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

func TestIncrex(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	const (
		most  = "9223372036854775807"
		least = "-9223372036854775808"
	)
	converse(t, s, c, `
		INCREX k => [1 1]
		INCREX k BYINT 5 => [6 5]
		INCREX k BYINT -10 => [-4 -10]
		INCREX k BYINT 0 => [-4 0]
		OBJECT ENCODING k => int
		# bounds: refused, or saturated
		SET k 99 => OK
		INCREX k BYINT 5 UBOUND 100 => [99 0]
		INCREX k BYINT 5 UBOUND 100 SATURATE => [100 1]
		INCREX k BYINT -500 LBOUND 0 => [100 0]
		INCREX k BYINT -500 LBOUND 0 SATURATE => [0 -100]
		INCREX k LBOUND 0 BYINT 100 UBOUND 10 SATURATE => [10 10]
		INCREX k BYINT -10 LBOUND 0 UBOUND 10 => [0 -10]
		# a value outside already
		SET k 50 => OK
		INCREX k BYINT 5 UBOUND 30 => [50 0]
		INCREX k BYINT -5 UBOUND 30 => [50 0]
		INCREX k BYINT -25 UBOUND 30 => [25 -25]
		SET k 50 => OK
		INCREX k BYINT 5 UBOUND 30 SATURATE => [30 -20]
		# a key that is missing
		DEL k => 1
		INCREX k BYINT 5 LBOUND 10 => [0 0]
		EXISTS k => 0
		INCREX k LBOUND 5 SATURATE => [5 5]
		DEL k => 1
		INCREX k UBOUND 0 SATURATE => [0 0]
		EXISTS k => 1
		# beyond 64 bits
		SET k 9223372036854775800 => OK
		INCREX k BYINT 9223372036854775800 => [9223372036854775800 0]
		INCREX k BYINT 9223372036854775800 SATURATE => [`+most+` 7]
		SET k -9223372036854775800 => OK
		INCREX k BYINT -9223372036854775800 => [-9223372036854775800 0]
		INCREX k BYINT -9223372036854775800 SATURATE => [`+least+` -8]
		SET k 9223372036854775800 => OK
		INCREX k BYINT 1 SATURATE UBOUND `+least+` => -ERR applied increment would overflow
		GET k => 9223372036854775800
	`)
}

func TestIncrexFloat(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		SET k 1.5 => OK
		INCREX k BYFLOAT 0.25 => [1.75 0.25]
		INCREX k BYFLOAT 0.1 => [1.85 0.1]
		INCREX k BYINT 1 => -ERR value is not an integer or out of range
		SET k 10 => OK
		INCREX k BYFLOAT 100 UBOUND 42.5 => [10 0]
		INCREX k BYFLOAT 100 UBOUND 42.5 SATURATE => [42.5 32.5]
		INCREX k BYFLOAT -100 LBOUND -5.5 SATURATE => [-5.5 -48]
		GET k => -5.5
		DEL k => 1
		INCREX k BYFLOAT -0.5 UBOUND -1.5 => [0 0]
		EXISTS k => 0
		INCREX k BYFLOAT inf => -ERR BYFLOAT increment cannot be Infinity
		INCREX k BYFLOAT 1 LBOUND -inf UBOUND inf => [1 1]
		INCREX k BYFLOAT 1 LBOUND -inf UBOUND -inf SATURATE => -ERR applied increment would be Infinity
		SET k inf => OK
		INCREX k BYFLOAT 1 => -ERR value cannot be Infinity
		SET k hello => OK
		INCREX k BYFLOAT 1 => -ERR value is not a valid float
		INCREX k => -ERR value is not an integer or out of range
		SET k 2 => OK
	`)
	c.Do("HELLO", 3)
	c.Want("[2.5 0.5]", "INCREX", "k", "BYFLOAT", 0.5)
}

func TestIncrexExpiry(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		INCREX k EX 100 => [1 1]
		TTL k => 100
		INCREX k => [2 1]
		TTL k => 100
		INCREX k PX 5000 => [3 1]
		PTTL k => 5000
		INCREX k EXAT 1700000100 => [4 1]
		TTL k => 100
		INCREX k PXAT 1700000200000 ENX => [5 1]
		TTL k => 100
		INCREX k PERSIST => [6 1]
		TTL k => -1
		INCREX k ENX EX 60 => [7 1]
		TTL k => 60
		# a refused increment leaves the time alone too
		INCREX k UBOUND 7 EX 1000 => [7 0]
		TTL k => 60
		INCREX k UBOUND 7 PERSIST => [7 0]
		TTL k => 60
		# a time that has passed
		INCREX k EXAT 1 ENX => [8 1]
		EXISTS k => 1
		INCREX k EXAT 1 => [9 1]
		EXISTS k => 0
		INCREX k PXAT 1 => [1 1]
		EXISTS k => 0
		# the window counter
		INCREX w UBOUND 2 EX 60 ENX => [1 1]
		+30000
		INCREX w UBOUND 2 EX 60 ENX => [2 1]
		INCREX w UBOUND 2 EX 60 ENX => [2 0]
		TTL w => 30
		+30001
		INCREX w UBOUND 2 EX 60 ENX => [1 1]
	`)
}

func TestIncrexErrors(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "SET", "k", 5)
	for _, line := range []string{
		"FOO", "BYINT 1 FOO", "BYINT 1 BYFLOAT 1.5", "BYFLOAT 1.5 BYINT 1", "BYINT 1 BYINT 2", "BYINT",
		"LBOUND 0 LBOUND 1", "UBOUND 9 UBOUND 8", "SATURATE SATURATE", "SAT LBOUND 0", "LBOUND",
		"EX 10 PX 5000", "EX 10 EX 20", "EX 10 PERSIST", "PERSIST EX 10", "PERSIST PERSIST", "PERSIST ENX",
		"ENX PERSIST", "ENX ENX EX 10", "EX",
	} {
		if got := c.Line("INCREX k " + line); got != syntax {
			t.Errorf("INCREX k %s: %s", line, got)
		}
	}
	for line, want := range map[string]string{
		"INCREX":                               "-ERR wrong number of arguments for 'increx' command",
		"INCREX k ENX":                         "-ERR ENX flag requires an expiration",
		"INCREX k BYINT abc":                   "-ERR Increment is not an integer or out of range",
		"INCREX k BYINT 1.5":                   "-ERR Increment is not an integer or out of range",
		"INCREX k BYFLOAT abc":                 "-ERR Increment is not a valid float",
		"INCREX k LBOUND 1.5":                  "-ERR LBOUND is not an integer or out of range",
		"INCREX k UBOUND inf":                  "-ERR UBOUND is not an integer or out of range",
		"INCREX k BYFLOAT 1 UBOUND abc":        "-ERR UBOUND is not a valid float",
		"INCREX k LBOUND 10 UBOUND 5":          "-ERR LBOUND can't be greater than UBOUND",
		"INCREX k BYFLOAT 1 LBOUND 2 UBOUND 1": "-ERR LBOUND can't be greater than UBOUND",
		"INCREX k EX 0":                        "-ERR invalid expire time in 'increx' command",
		"INCREX k PX -1":                       "-ERR invalid expire time in 'increx' command",
		"INCREX k EX 9223372036854775807":      "-ERR invalid expire time in 'increx' command",
		"INCREX k EX x":                        notInt,
	} {
		if got := c.Line(line); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	c.Want("5", "GET", "k")
	c.Want("-1", "TTL", "k")
	c.Want("1", "HSET", "h", "f", "v")
	c.Want(wrongType, "INCREX", "h")
}
