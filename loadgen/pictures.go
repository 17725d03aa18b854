package main

// Costs that grow with the number of keys: snapshots and rewrites under load, and loading. Servers run one at a time, to save
// memory.

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// pictured is the result of a snapshot in the background under load.
type pictured struct {
	Quiet, During latencies
	Seconds       float64
	CPU           float64 // additional seconds of processor time
	Extra         float64 // additional memory, as a share of that before
}

// added returns what the snapshot added to p99.9, in microseconds.
func (p pictured) added() float64 { return p.During.P999 - p.Quiet.P999 }

// loaded is the time of loading a file.
type loaded struct {
	name         string
	seconds, cpu []float64 // by server
}

// pictureRate is the number of requests per second during a snapshot, pictureMax how long one may take.
const (
	pictureRate = 20_000
	pictureMax  = 10 * time.Minute
)

// measurePictures lets each server make a snapshot and then rewrite its log, while requests arrive at a fixed rate.
func (m *matrix) measurePictures() error {
	d := m.durability
	for _, x := range []struct {
		name, command, running string
		args                   []string
	}{
		{"BGSAVE", "BGSAVE", "rdb_bgsave_in_progress", []string{"--save", "", "--appendonly", "no"}},
		{"BGREWRITEAOF, everysec", "BGREWRITEAOF", "aof_rewrite_in_progress", append(withLog(everysec), "--auto-aof-rewrite-percentage", "0")},
	} {
		var all []pictured
		for i := range m.programs {
			err := withPrograms(m.programs[i:i+1], func(int) []string { return x.args }, nil, func(targets []*target) error {
				t, params := targets[0], m.params
				params.pipeline, params.keys, params.rate = 1, d.keys, pictureRate
				if err := t.prepare(find("set"), &params); err != nil {
					return err
				}
				var rounds []pictured
				for range m.rounds {
					p, err := t.picture(x.command, x.running, params)
					if err != nil {
						return err
					}
					fmt.Fprintf(os.Stderr, "%s of %d on %s: %+.0f µs (%.0f, %.0f), p99 %.0f, max %.0f, %+.0f %%, %.2f s, %.2f s CPU\n", x.name, d.keys, t.name,
						p.added(), p.Quiet.P999, p.During.P999, p.During.P99, p.During.Max, 100*p.Extra, p.Seconds, p.CPU)
					rounds = append(rounds, p)
				}
				all = append(all, middles(rounds))
				return nil
			})
			if err != nil {
				return err
			}
		}
		d.pictures = append(d.pictures, x.name)
		d.pictured = append(d.pictured, all)
	}
	return nil
}

// picture measures a server before and during a snapshot.
func (t *target) picture(command, running string, params params) (p pictured, err error) {
	set := find("set")
	c, err := dial(t.addr, t.auth)
	if err != nil {
		return p, err
	}
	defer c.close()
	time.Sleep(settle)
	params.duration *= latencyTimes
	quiet, err := t.run(set, &params)
	if err != nil {
		return p, err
	}
	before, highest := residentBytes(t.pid), int64(0)
	forksBefore, err := c.forksSeconds()
	if err != nil {
		return p, err
	}
	stop := make(chan struct{})
	watched := make(chan error, 1)
	began := time.Now()
	if _, err := c.text(command); err != nil {
		return p, err
	}
	params.duration, params.warmup = pictureMax, 0
	ending := func(end func()) {
		for {
			select {
			case <-stop:
				watched <- nil
				return
			case <-time.After(20 * time.Millisecond):
			}
			highest = max(highest, residentBytes(t.pid))
			n, err := c.field("persistence", running)
			if err == nil && n == 1 {
				continue
			}
			p.Seconds = time.Since(began).Seconds()
			end()
			watched <- err
			return
		}
	}
	during, err := t.runUntil(set, &params, ending)
	close(stop)
	if err = errors.Join(err, <-watched); err != nil {
		return p, err
	}
	forks, err := c.forksSeconds()
	if err != nil {
		return p, err
	}
	// The copies of a fork belong to the child: the server reports them.
	copied, err := c.field("persistence", map[string]string{"BGSAVE": "rdb_last_cow_size", "BGREWRITEAOF": "aof_last_cow_size"}[command])
	p.Quiet, p.During = quiet.Latency, during.Latency
	p.CPU = forks - forksBefore + (during.CPU-quiet.CPU)*float64(during.Requests)/1e6
	p.Extra = float64(highest-before+int64(copied)) / float64(before)
	if t.name == "limitkv" { // its copies are its own memory
		p.Extra = float64(highest-before) / float64(before)
	}
	return p, err
}

// forksSeconds returns the processor time of a server's ended forks.
func (c *wire) forksSeconds() (seconds float64, err error) {
	for _, name := range []string{"used_cpu_user_children", "used_cpu_sys_children"} {
		n, e := c.field("cpu", name)
		seconds, err = seconds+n, errors.Join(err, e)
	}
	return seconds, err
}

// measureLoading lets each server start with many keys, from either kind of file, which it wrote itself.
func (m *matrix) measureLoading() error {
	d := m.durability
	for _, x := range []struct {
		name string
		args []string
		save []string
	}{
		{"an RDB file", []string{"--save", "", "--appendonly", "no"}, []string{"SAVE"}},
		{"an append-only file", append(withLog(everysec), "--aof-use-rdb-preamble", "no", "--auto-aof-rewrite-percentage", "0"), nil},
	} {
		row := loaded{name: fmt.Sprintf("%s of %s strings", x.name, thousands(float64(d.keys)))}
		for _, p := range m.programs {
			seconds, cpu, err := m.load(p, x.args, x.save)
			if err != nil {
				return err
			}
			row.seconds, row.cpu = append(row.seconds, seconds), append(row.cpu, cpu)
			fmt.Fprintf(os.Stderr, "loading %s: %s %.2f s, %.2f s CPU\n", row.name, p.name, seconds, cpu)
		}
		d.loading = append(d.loading, row)
	}
	return nil
}

// load fills a server, makes it save, and starts it again, once for each round.
func (m *matrix) load(p program, args, save []string) (seconds, cpu float64, err error) {
	p, dir, err := p.keeping(args...)
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	s, err := p.start()
	if err != nil {
		return 0, 0, err
	}
	params := m.params
	params.keys = m.durability.keys
	if err = s.prepare(find("set"), &params); err == nil && save != nil {
		var c *wire
		if c, err = dial(s.addr, ""); err == nil {
			_, err = c.text(save...)
			c.close()
		}
	}
	s.stop()
	if err != nil {
		return 0, 0, err
	}
	p.patience = pictureMax
	var all []pictured
	for range m.rounds {
		if err := warm(dir); err != nil {
			return 0, 0, err
		}
		x, err := p.loading(m.durability.keys)
		if err != nil {
			return 0, 0, err
		}
		all = append(all, x)
	}
	x := middles(all)
	return x.Seconds, x.CPU, nil
}

// loading starts a server whose files have so many keys.
func (p program) loading(keys int) (x pictured, err error) {
	s, err := p.start()
	if err != nil {
		return x, err
	}
	defer s.stop()
	x.Seconds, x.CPU = s.firstReply.Seconds(), float64(processorNanos(s.pid))/1e9
	c, err := dial(s.addr, "")
	if err != nil {
		return x, err
	}
	defer c.close()
	if n, err := c.text("DBSIZE"); err != nil || n != fmt.Sprint(keys) {
		return x, fmt.Errorf("%s has %s keys after loading, want %d: %w", p.name, n, keys, err)
	}
	return x, nil
}

// warm reads the files of a directory, so that they are in the page cache for every server.
func warm(dir string) error {
	return filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		_, err = os.ReadFile(path)
		return err
	})
}

// addedMax is how many microseconds a snapshot may add to p99.9, extraMax the share of memory that it may add.
const (
	addedMax = 1000
	extraMax = 0.1
)

func (d *durability) writePictures(b *strings.Builder, versions []string) {
	if len(d.pictures) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s strings written in the background while %s SETs come a second: what that adds to p99.9 (p99.9 before and then),\n"+
		"memory and processor time in addition, and how long it takes.\n\n| | %s | added, at most 1 ms | memory, at most 10 %% | time, ratio to Redis |\n| --- |%s --- | --- | --- |\n",
		thousands(float64(d.keys)), thousands(pictureRate), strings.Join(versions, " | "), strings.Repeat(" ---: |", len(versions)))
	for i, x := range d.pictures {
		fmt.Fprintf(b, "| %s |", x)
		for _, p := range d.pictured[i] {
			fmt.Fprintf(b, " %+.0f µs (%.0f, %.0f), %+.0f %%, %.1f s (CPU %.1f s) |", p.added(), p.Quiet.P999, p.During.P999, 100*p.Extra, p.Seconds, p.CPU)
		}
		ours, redis := d.pictured[i][0], d.pictured[i][1]
		added, ratio := ours.added(), ours.Seconds/redis.Seconds
		fmt.Fprintf(b, " %s ms | %s | %s |\n", verdict(added/1000, added <= addedMax), verdict(ours.Extra, ours.Extra <= extraMax), verdict(ratio, ratio <= 1))
	}
}

func (d *durability) writeLoading(b *strings.Builder, versions []string) {
	if len(d.loading) == 0 {
		return
	}
	fmt.Fprintf(b, "\nFrom the start to the first reply, the files being in memory; each server loads what it wrote itself. In brackets: processor time.\n\n"+
		"| | %s | ratio to Redis | at most |\n| --- |%s --- | --- |\n",
		strings.Join(versions, " | "), strings.Repeat(" ---: |", len(versions)))
	for _, x := range d.loading {
		fmt.Fprintf(b, "| %s |", x.name)
		for i, v := range x.seconds {
			fmt.Fprintf(b, " %.2f s (%.2f s) |", v, x.cpu[i])
		}
		ratio := x.seconds[0] / x.seconds[1]
		fmt.Fprintf(b, " %s | 1.0 |\n", verdict(ratio, ratio <= 1))
	}
}
