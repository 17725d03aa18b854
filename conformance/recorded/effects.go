// The effects of a conversation: what its commands changed, as files and replicas are told.

package recorded

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/limitkv/limitkv/conformance/peer"
)

// errBlind ends a proof: the conversation has ended the connection that asks for it.
var errBlind = errors.New("the conversation ended the connection that looks at it")

func blind(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// Prove runs the file, whatever its replies are, and has the server prove after every step that the effects it logged make
// the same keys of nothing. It returns how many steps were proven, and what was not so.
func (f *File) Prove(addr string) (proven int, diffs []Difference, err error) {
	begin := func(admin *peer.Conn) error {
		v, err := admin.Do("LKV.JOURNAL", "START")
		if err == nil && v.IsError() {
			err = fmt.Errorf("LKV.JOURNAL START: %v", v)
		}
		return err
	}
	after := func(admin *peer.Conn, s *step, text string) error {
		v, err := admin.Do("LKV.JOURNAL", "CHECK")
		if blind(err) {
			return errBlind
		}
		if err != nil {
			return err
		}
		proven++
		if v.IsError() && len(diffs) < 3 {
			diffs = append(diffs, Difference{Where: fmt.Sprintf("%s:%d", f.Path, s.number), Command: text, Want: "equal keys", Got: v.String()})
		}
		return nil
	}
	if err = f.runWith(addr, f.Protocols[:1], begin, after, func(*step, int, string, peer.Value) error { return nil }); errors.Is(err, errBlind) {
		err = nil
	}
	return proven, diffs, err
}
