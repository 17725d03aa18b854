// A link can be cut, and mended.
package peer

import (
	"net"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

// TestLink has a link carry bytes, be cut, and carry them again.
func TestLink(t *testing.T) {
	primary := LimitKV(t)
	l, err := NewLink(primary.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ping := func() error {
		c, err := Dial(net.JoinHostPort("127.0.0.1", l.Port()))
		if err == nil {
			defer c.Close()
			_, err = c.Do("PING")
		}
		return err
	}
	for _, cut := range []bool{false, true, false} {
		if l.Set(cut); (ping() != nil) != cut {
			t.Errorf("cut is %v, and it is not so", cut)
		}
	}
}
