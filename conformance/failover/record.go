package main

// What the programs print, and what is made of it: whether each client goes on, that fences rise, and what was lost.

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// program is one that runs.
type program struct {
	folder string
	cmd    *exec.Cmd
	end    func() // with all that it has started
	input  io.WriteCloser
	ended  chan struct{}
	logs   peer.Tail // what libraries say beside the lines
}

func (p *program) kill() {
	p.end()
	<-p.ended
	_ = p.cmd.Wait()
}

// start starts a program, of which the record notes what it prints.
func (d driver) start(sentinels string, r *record) (*program, error) {
	cmd := exec.Command("./run")
	cmd.Dir = filepath.Join("conformance/clients", d.folder)
	cmd.Env = append(os.Environ(), "SENTINELS="+sentinels)
	p := &program{folder: d.folder, cmd: cmd, end: peer.Group(cmd), ended: make(chan struct{})}
	cmd.Stderr = &p.logs
	var err error
	if p.input, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			r.line(d.folder, lines.Text())
		}
	}()
	return p, nil
}

// client is what one library has done.
type client struct {
	folder      string
	told, added map[int]time.Time
	done        map[int]int
	fences      map[string]int64
	again       []time.Time          // when a fence was granted again: its release is lost
	seen        map[string]time.Time // when each kind of thing was done last
	counts      map[string]int
	errors      int
	lastError   string
}

type record struct {
	mu      sync.Mutex
	clients map[string]*client
	wrong   []string
	inputs  []*program
	lossy   [][2]time.Time // when what is told may be lost
}

func newRecord() *record { return &record{clients: map[string]*client{}} }

func (r *record) line(folder, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	parts := strings.Split(text, "\t")
	if len(parts) < 3 {
		r.wrong = append(r.wrong, folder+" printed "+strconv.Quote(text))
		return
	}
	name := parts[1]
	c := r.clients[name]
	if c == nil {
		c = &client{folder: folder, told: map[int]time.Time{}, added: map[int]time.Time{}, done: map[int]int{}, fences: map[string]int64{},
			seen: map[string]time.Time{}, counts: map[string]int{}}
		r.clients[name] = c
	}
	n, err := strconv.ParseInt(parts[len(parts)-1], 10, 64)
	kind := parts[0]
	switch {
	case kind == "error":
		c.errors++
		c.lastError = strings.Join(parts[2:], ": ")
		return
	case kind == "got":
		kind = parts[2]
	case err != nil:
		r.wrong = append(r.wrong, folder+" printed "+strconv.Quote(text))
	case kind == "told":
		c.told[int(n)] = now
	case kind == "added":
		c.added[int(n)] = now
	case kind == "done":
		c.done[int(n)]++
	case kind == "fence" && len(parts) == 4:
		kind = "fence of who " + parts[2]
		if n == c.fences[parts[2]] {
			c.again = append(c.again, now)
		} else if n < c.fences[parts[2]] {
			r.wrong = append(r.wrong, fmt.Sprintf("%s: %s was granted the fence %d after %d", name, parts[2], n, c.fences[parts[2]]))
		}
		c.fences[parts[2]] = n
	default:
		r.wrong = append(r.wrong, folder+" printed "+strconv.Quote(text))
	}
	c.seen[kind] = now
	c.counts[kind]++
}

// own is what a client does that can send limitkv's own commands.
var own = []string{"told", "DQ.POP", "RL.ACQUIRE", "fence of who holds", "fence of who waits"}

// clients are the libraries of each folder, with what each does again and again.
var clients = map[string]map[string][]string{
	"go":     {"go-redis": own, "rueidis": own, "asynq": {"added", "done"}},
	"java":   {"Jedis": own, "Lettuce": own, "Redisson": {"told", "BLPOP", "lock"}},
	"node":   {"ioredis": own, "BullMQ": {"added", "done"}},
	"python": {"redis-py": own},
}

// goesOn waits until all clients have done all that they do after a moment.
func (r *record) goesOn(since time.Time) error {
	if err := eventually("all clients at work", func() bool { return r.lacking(since) == "" }); err != nil {
		return fmt.Errorf("%w; there is no %s", err, r.lacking(since))
	}
	return nil
}

// lacking names what clients have not done since a moment.
func (r *record) lacking(since time.Time) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for _, p := range r.inputs {
		for name, kinds := range clients[p.folder] {
			c := r.clients[name]
			if c == nil {
				list = append(list, "line of "+name)
				continue
			}
			for _, kind := range kinds {
				if !c.seen[kind].After(since) {
					list = append(list, fmt.Sprintf("%s of %s (its last error is %q)", kind, name, c.lastError))
				}
			}
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// late is how much later than the client was told the record may have a line.
const late = 5 * time.Second

// mayBeLost tells whether what was told at a time may be lost.
func (r *record) mayBeLost(at time.Time) bool {
	return slices.ContainsFunc(r.lossy, func(span [2]time.Time) bool { return at.After(span[0]) && at.Before(span[1].Add(late)) })
}

// lost are the numbers that a client was told of and that are nowhere, with when it was told.
func (r *record) lost(name string, primary *node) (map[int]time.Time, error) {
	r.mu.Lock()
	c := r.clients[name]
	lost := maps.Clone(c.told)
	for n, at := range c.added {
		if c.done[n] == 0 {
			lost[n] = at
		}
	}
	r.mu.Unlock()
	if len(c.told) == 0 {
		return lost, nil
	}
	v := primary.ask("LRANGE", "ledger:"+name, "0", "-1")
	if len(v.Items) == 0 {
		return nil, fmt.Errorf("the ledger of %s: %v", name, v)
	}
	for _, item := range v.Items {
		n, err := strconv.Atoi(item.Text)
		if err != nil {
			return nil, err
		}
		delete(lost, n)
	}
	return lost, nil
}

// settle ends the work, waits until the queues are done, and counts what was lost.
func (r *record) settle(primary *node) error {
	for _, p := range r.inputs {
		p.input.Close()
	}
	r.mu.Lock()
	names := slices.Sorted(maps.Keys(r.clients))
	r.mu.Unlock()
	var failed error
	// Workers look in their own time for jobs of those who went away, asynq once a minute.
	late := eventually("the end of all jobs", func() bool {
		for _, name := range names {
			lost, err := r.lost(name, primary)
			if failed = err; err != nil {
				return true
			}
			for _, at := range lost {
				if !r.mayBeLost(at) {
					return false
				}
			}
		}
		return true
	})
	if failed != nil {
		return failed
	}
	for _, name := range names {
		lost, err := r.lost(name, primary)
		if err != nil {
			return err
		}
		r.mu.Lock()
		c := r.clients[name]
		for n, at := range lost {
			if !r.mayBeLost(at) {
				r.wrong = append(r.wrong, fmt.Sprintf("%s lost %d, of which it was told at %s, when nothing may be lost (%v)", name, n, at.Format(time.TimeOnly), late))
			}
		}
		for _, at := range c.again {
			if !r.mayBeLost(at) {
				r.wrong = append(r.wrong, fmt.Sprintf("%s was granted a fence again at %s, when no release may be lost", name, at.Format(time.TimeOnly)))
			}
		}
		twice := 0
		for _, times := range c.done {
			twice += times - 1
		}
		fmt.Printf("%-9s %v; %d lost of %d; %d jobs done twice; %d errors on the way\n", name, c.counts, len(lost), len(c.told)+len(c.added), twice, c.errors)
		r.mu.Unlock()
	}
	if len(r.wrong) > 0 {
		return fmt.Errorf("%s", strings.Join(r.wrong, "\n"))
	}
	return nil
}
