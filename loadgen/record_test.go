package main

// A conversation through the recorder, and its replay: on several connections at once, and on a server that replies otherwise.

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sends writes commands, and, with wait, reads as many replies.
func sends(t *testing.T, conn net.Conn, wait bool, commands ...[]string) {
	t.Helper()
	var b []byte
	for _, args := range commands {
		b = append(b, marked(args).text...)
	}
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
	if wait {
		reads(t, conn, len(commands))
	}
}

func reads(t *testing.T, conn net.Conn, answers int) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	b := make([]byte, 64<<10)
	size := 0
	for answers > 0 {
		n, err := conn.Read(b[size:])
		if err != nil {
			t.Fatal(err)
		}
		size += n
		var r reply
		for n := scan(b[:size], &r); n > 0; n = scan(b[:size], &r) {
			size = copy(b, b[n:size])
			answers--
		}
	}
}

func TestRecordAndReplay(t *testing.T) {
	target := startServer(t)
	r, err := newRecorder(target.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	var conns []net.Conn
	for range 3 {
		c, err := net.Dial("tcp", r.addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	const script = "return redis.call('rpush', KEYS[1], ARGV[1])"
	list, counter := mark+":list", "{"+mark+"}:counter"
	waits, works, listens := conns[0], conns[1], conns[2]
	sends(t, listens, true, []string{"SUBSCRIBE", mark})
	sends(t, waits, true, []string{"HELLO", "2"}, []string{"BLPOP", list, "0.01"})
	sends(t, waits, false, []string{"BLPOP", list, "0"})
	time.Sleep(20 * time.Millisecond)
	sends(t, works, true, []string{"EVALSHA", shaOf(script), "1", list, "\x00\r\n\"é"})
	sends(t, works, true, []string{"EVAL", script, "1", list, "\x00\r\n\"é"})
	reads(t, waits, 1)
	sends(t, works, true, []string{"MULTI"})
	sends(t, waits, true, []string{"GET", mark + "between"}, []string{"INCR", "others"})
	sends(t, works, true, []string{"SET", counter, "1"}, []string{"INCR", counter}, []string{"EXEC"}, []string{"PUBLISH", mark, "done"})
	sends(t, works, true, []string{"RPUSH", mark + "left", "x"})
	r.close()
	left, err := markedKeys(target.addr)
	if err != nil || len(left) != 2 {
		t.Fatalf("%q are left, %v", left, err)
	}
	made, err := r.recording(left)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sub", "x.txt")
	if err := made.write(path); err != nil {
		t.Fatal(err)
	}
	got, err := readRecording(path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range got.calls {
		names = append(names, c.args[0])
	}
	if said := strings.Join(names, " "); said != "EVALSHA BLPOP GET MULTI SET INCR EXEC PUBLISH RPUSH UNLINK" {
		t.Errorf("the conversation is %s", said)
	}
	if len(got.scripts) != 1 || got.calls[0].args[4] != "\x00\r\n\"é" || !got.calls[2].null || got.calls[1].null {
		t.Errorf("the recording is %+v", got)
	}
	play := func(r *recording) *result {
		w := r.workload(library{name: "test"})
		p := params{connections: 5, pipeline: 3, threads: 1, requests: 1000, duration: time.Minute}
		if err := target.prepare(w, &p); err != nil {
			t.Fatal(err)
		}
		result, err := target.run(w, &p)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	if result := play(got); result.Errors != 0 || target.seq < 1000 {
		t.Errorf("%d requests, %d errors (%s)", target.seq, result.Errors, result.FirstError)
	}
	got.calls[2].null = false
	if result := play(got); result.Errors < 90 || !strings.Contains(result.FirstError, "GET") {
		t.Errorf("%d requests and %d errors (%s), want a tenth to be errors", target.seq, result.Errors, result.FirstError)
	}
}

func TestRecordingOfAnError(t *testing.T) {
	target := startServer(t)
	r, err := newRecorder(target.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	conn, err := net.Dial("tcp", r.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sends(t, conn, true, []string{"SET", mark, "x"}, []string{"INCR", mark})
	if _, err := r.recording(nil); err == nil || !strings.Contains(err.Error(), "INCR") {
		t.Errorf("the recording of an error gives %v", err)
	}
}

func TestNoRecording(t *testing.T) {
	dir := t.TempDir()
	for i, text := range []string{"", "value\n", "value \"GET\n", "else \"GET\"\n", "script \"return\"\n"} {
		path := recordingFile(dir, fmt.Sprint(i))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := readRecording(path); err == nil {
			t.Errorf("%q is read as %v", text, r)
		}
	}
	if list, missing, err := recordedWorkloads(dir); err != nil || len(list) != 0 || len(missing) != len(libraries) {
		t.Errorf("an empty folder has %v, misses %v, %v", list, missing, err)
	}
}
