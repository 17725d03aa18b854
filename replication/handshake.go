package replication

// What a replica and its primary send before the stream: who the replica is, what it understands, and from which offset
// it needs the stream, or else the whole file that precedes it.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// handshake introduces the replica.
func (l *Link) handshake() error {
	if err := l.say("PING"); err != nil {
		return err
	}
	reply, err := l.line()
	if err != nil {
		return fmt.Errorf("Error reply to PING from master: %w", err)
	}
	wantsUser := strings.HasPrefix(reply, "-NOAUTH") || strings.HasPrefix(reply, "-NOPERM") || strings.HasPrefix(reply, "-ERR operation not permitted")
	if !strings.HasPrefix(reply, "+") && !wantsUser {
		return fmt.Errorf("Error reply to PING from master: '%.200s'", reply)
	}
	l.f.Log('n', "Master replied to PING, replication can continue...")
	s := &l.settings
	if s.Password != "" {
		words := []string{"AUTH", s.Password}
		if s.User != "" {
			words = []string{"AUTH", s.User, s.Password}
		}
		if reply, err = l.ask(words...); err == nil && strings.HasPrefix(reply, "-") {
			err = fmt.Errorf("Unable to AUTH to MASTER: %.200s", reply)
		}
		if err != nil {
			return err
		}
	}
	capabilities := []string{"REPLCONF", "capa", "eof", "capa", "psync2"}
	for _, c := range s.Capabilities {
		capabilities = append(capabilities, "capa", c)
	}
	facts := [][]string{{"REPLCONF", "listening-port", strconv.Itoa(s.Port)}}
	if s.IP != "" {
		facts = append(facts, []string{"REPLCONF", "ip-address", s.IP})
	}
	for _, words := range append(facts, capabilities, []string{"REPLCONF", "version", s.Version}) {
		reply, err := l.ask(words...)
		if err != nil {
			return err
		}
		if strings.HasPrefix(reply, "-") { // the primary need not understand it
			l.f.Log('n', "(Non critical) Master does not understand REPLCONF %s: %.200s", words[1], reply)
		}
	}
	return nil
}

func (l *Link) ask(words ...string) (string, error) {
	if err := l.say(words...); err != nil {
		return "", err
	}
	return l.line()
}

// idSize is the length of a stream's ID.
const idSize = 40

// lineMax is the longest line of a primary.
const lineMax = 64 << 10

// line reads a line, without its end. Empty lines keep the connection alive.
func (l *Link) line() (string, error) {
	for seen := 0; ; {
		rest := l.in.rest()
		if i := bytes.IndexByte(rest[seen:], '\n'); i >= 0 {
			text := strings.TrimSuffix(string(rest[:seen+i]), "\r")
			l.in.from += seen + i + 1
			if seen = 0; text != "" {
				return text, nil
			}
			continue
		}
		if seen = len(rest); seen > lineMax {
			return "", errors.New("a line that does not end")
		}
		if err := l.in.fill(0); err != nil {
			return "", err
		}
	}
}

// sync requests the stream from where the follower is. It returns when the next bytes are the stream.
func (l *Link) sync() error {
	id, offset := l.f.From()
	from := strconv.FormatInt(offset+1, 10)
	if id == "" {
		id, from = "?", "-1"
		l.f.Log('n', "Partial resynchronization not possible (no cached master)")
	} else {
		l.f.Log('n', "Trying a partial resynchronization (request %s:%s).", id, from)
	}
	ask, over := []string{"PSYNC", id, from}, l.f.FailsOver()
	if over {
		ask = append(ask, "FAILOVER")
	}
	reply, err := l.ask(ask...)
	if err != nil {
		return err
	}
	words := strings.Fields(reply)
	if over {
		l.f.Answered(words != nil && (words[0] == "+FULLRESYNC" || words[0] == "+CONTINUE"))
	}
	switch {
	case len(words) == 3 && words[0] == "+FULLRESYNC" && len(words[1]) == idSize:
		offset, err := strconv.ParseInt(words[2], 10, 64)
		if err != nil || offset < 0 || offset > OffsetMax {
			break
		}
		l.f.Log('n', "Full resync from master: %s:%d", words[1], offset)
		return l.transfer(words[1], offset)
	case len(words) > 0 && words[0] == "+CONTINUE" && id != "?":
		l.f.Log('n', "Successful partial resynchronization with master.")
		if len(words) > 1 && len(words[1]) == idSize {
			id = words[1]
		}
		return l.f.Continue(id)
	case strings.HasPrefix(reply, "-NOMASTERLINK"), strings.HasPrefix(reply, "-LOADING"):
		return fmt.Errorf("Master is currently unable to PSYNC but should be in the future: %.200s", reply)
	}
	return fmt.Errorf("Unexpected reply to PSYNC from master: %.200s", reply)
}

// File reads the whole file that the primary sends, while it arrives.
type File struct {
	// Size is the size of the file, -1 if the primary writes it while sending.
	Size int64

	link *Link
	left int64 // bytes that were not read yet, if the size is known
	// mark follows the file if its size is unknown. It does not begin in the first clean bytes of the input.
	mark  []byte
	clean int
	err   error
}

// markSize is the length of a file's mark.
const markSize = 40

// transfer makes the follower load the file that the primary sends.
func (l *Link) transfer(id string, offset int64) error {
	l.fileSize.Store(-1)
	l.fileRead.Store(0)
	l.state.Store(int32(Transfer))
	head, err := l.line()
	switch {
	case err != nil:
		return fmt.Errorf("I/O error reading bulk count from MASTER: %w", err)
	case head[0] == '-':
		return fmt.Errorf("MASTER aborted replication with an error: %.200s", head[1:])
	case head[0] != '$':
		return fmt.Errorf("Bad protocol from MASTER, the first byte is not '$' (we received '%.200s'), are you sure the host and port are right?", head)
	}
	f := &File{link: l, Size: -1}
	if mark, ok := strings.CutPrefix(head, "$EOF:"); ok && len(mark) == markSize {
		f.mark = []byte(mark)
		l.f.Log('n', "MASTER <-> REPLICA sync: receiving streamed RDB from master with EOF")
	} else {
		if f.Size, err = strconv.ParseInt(head[1:], 10, 64); err != nil || f.Size < 0 {
			return fmt.Errorf("Bad protocol from MASTER: the length of the file is %.200q", head[1:])
		}
		f.left = f.Size
		l.fileSize.Store(f.Size)
		l.f.Log('n', "MASTER <-> REPLICA sync: receiving %d bytes from master", f.Size)
	}
	// These line ends tell the primary that its replica is alive, however long loading takes.
	end := beat(func() bool { return l.write([]byte{'\n'}) == nil }) // on an error, the reader gets one too
	if err = l.f.Load(f, id, offset); err != nil {
		l.Drop() // ends a write in progress
	}
	end()
	return err
}

// Read implements io.Reader.
func (f *File) Read(b []byte) (n int, err error) {
	switch {
	case f.err != nil:
		return 0, f.err
	case f.Size >= 0 && f.left == 0:
		return 0, io.EOF
	case len(b) == 0:
		return 0, nil
	}
	if f.link.Stopped() {
		f.err = errStopped
	} else if f.Size >= 0 {
		n, f.err = f.sized(b)
	} else {
		n, f.err = f.marked(b)
	}
	f.link.fileRead.Add(int64(n))
	if n > 0 {
		return n, nil
	}
	return 0, f.err
}

func (f *File) sized(b []byte) (n int, err error) {
	b = b[:min(int64(len(b)), f.left)]
	in := &f.link.in
	if rest := in.rest(); len(rest) > 0 {
		n = copy(b, rest)
		in.from += n
	} else if n, err = in.read(b); err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	f.left -= int64(n)
	return n, err
}

// marked does not return bytes that may begin the mark.
func (f *File) marked(b []byte) (int, error) {
	in := &f.link.in
	for f.clean <= 0 {
		rest := in.rest()
		switch end := bytes.Index(rest, f.mark); {
		case end == 0:
			in.from += markSize
			return 0, io.EOF
		case end > 0:
			f.clean = end
			continue
		}
		if f.clean = len(rest) - (markSize - 1); f.clean > 0 {
			break
		}
		if err := in.fill(0); err == io.EOF {
			return 0, io.ErrUnexpectedEOF
		} else if err != nil {
			return 0, err
		}
	}
	n := copy(b, in.rest()[:f.clean])
	in.from += n
	f.clean -= n
	return n, nil
}
