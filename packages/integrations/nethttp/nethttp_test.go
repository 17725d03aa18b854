// Checks of the middleware: handlers of net/http, asked by HTTP, on a real server whose clock stands still and is moved.
package nethttp

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// server is limitkv, of which LIMITKV names the binary.
type server struct {
	addr    string
	client  *redis.Client
	process *exec.Cmd
}

func start(t *testing.T, port string) *server {
	t.Helper()
	cmd := exec.Command(os.Getenv("LIMITKV"), "--test", "--port", port, "--save", "")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	at, found := "", false
	for lines := bufio.NewScanner(out); !found; {
		if !lines.Scan() {
			t.Fatalf("the server ended: %v", lines.Err())
		}
		_, at, found = strings.Cut(lines.Text(), "listens on ")
	}
	addr, _, _ := strings.Cut(strings.TrimSpace(at), " ")
	s := &server{addr, redis.NewClient(&redis.Options{Addr: addr}), cmd}
	t.Cleanup(s.stop)
	s.do(t, "LKV.CLOCK", "FREEZE", 1700000000000)
	return s
}

func (s *server) do(t *testing.T, args ...any) {
	t.Helper()
	if err := s.client.Do(context.Background(), args...).Err(); err != nil {
		t.Fatal(err)
	}
}

func (s *server) stop() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
	_ = s.client.Close()
}

// serve returns what asks a handler behind the middleware: the status, RateLimit, RateLimit-Policy and Retry-After.
func serve(t *testing.T, o Options) func(user string) string {
	t.Helper()
	limit, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	app := httptest.NewServer(limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "here you are") })))
	t.Cleanup(app.Close)
	return func(user string) string {
		t.Helper()
		r, _ := http.NewRequest("GET", app.URL, nil)
		r.Header.Set("X-User", user)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		h := answer.Header
		return fmt.Sprint(answer.StatusCode, " ", strings.Join(h.Values("RateLimit"), ", "), " | ", strings.Join(h.Values("RateLimit-Policy"), ", "), " | ", h.Get("Retry-After"))
	}
}

func want(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s\nis not\n%s", got, want)
	}
}

func three(r *http.Request) []Limit {
	return []Limit{{Key: "api:" + r.Header.Get("X-User"), Rule: "LOG 3 60000"}}
}

const policy = ` | "default";q=3;w=60 | `

func TestHeaders(t *testing.T) {
	s := start(t, "0")
	ask := serve(t, Options{Client: s.client, Limits: three})
	want(t, ask("ann"), `200 "default";r=2;t=60`+policy)
	s.do(t, "LKV.CLOCK", "ADVANCE", 20000)
	want(t, ask("ann"), `200 "default";r=1;t=60`+policy)
	want(t, ask("ann"), `200 "default";r=0;t=60`+policy)
	want(t, ask("ann"), `429 "default";r=0;t=60`+policy+"40")
	want(t, ask("bob"), `200 "default";r=2;t=60`+policy)
	s.do(t, "LKV.CLOCK", "ADVANCE", 39999)
	want(t, ask("ann"), `429 "default";r=0;t=21`+policy+"1")
	s.do(t, "LKV.CLOCK", "ADVANCE", 1)
	want(t, ask("ann"), `200 "default";r=0;t=60`+policy)
}

func TestSeveralLimits(t *testing.T) {
	s := start(t, "0")
	ask := serve(t, Options{Client: s.client, Limits: func(r *http.Request) []Limit {
		return []Limit{{"burst", "u", "GCRA 2 1000", 0}, {"hour", "h", "FIXED 3 3600000", 1}, {"trial", "t", "TOTAL 9", 2}, {"day", "d", "CAL 50 DAY TZ Asia/Tokyo", 1}}
	}})
	policies := ` | "burst";q=2;w=1, "hour";q=3;w=3600, "trial";q=9, "day";q=50;w=86400 | `
	want(t, ask(""), `200 "burst";r=1;t=1, "hour";r=2;t=3600, "trial";r=7, "day";r=49;t=60400`+policies)
	want(t, ask(""), `200 "burst";r=0;t=1, "hour";r=1;t=3600, "trial";r=5, "day";r=48;t=60400`+policies)
	want(t, ask(""), `429 "burst";r=0;t=1, "hour";r=1;t=3600, "trial";r=5, "day";r=48;t=60400`+policies+"1")
	s.do(t, "LKV.CLOCK", "ADVANCE", 1000)
	want(t, ask(""), `200 "burst";r=1;t=1, "hour";r=0;t=3599, "trial";r=3, "day";r=47;t=60399`+policies)
	want(t, ask(""), `429 "burst";r=1;t=1, "hour";r=0;t=3599, "trial";r=3, "day";r=47;t=60399`+policies+"3599")
}

func TestCosts(t *testing.T) {
	s := start(t, "0")
	var told error
	ask := serve(t, Options{Client: s.client, OnError: func(_ *http.Request, err error) { told = err }, Limits: func(r *http.Request) []Limit {
		var cost int64
		switch n, _ := fmt.Sscan(r.Header.Get("X-User"), &cost); n {
		case 0:
			return nil
		}
		return []Limit{{Key: "c", Rule: "FIXED 5 1000", Cost: cost}}
	}})
	want(t, ask("free"), "200  |  | ")
	want(t, ask("3"), `200 "default";r=2;t=1 | "default";q=5;w=1 | `)
	want(t, ask("3"), `429 "default";r=2;t=1 | "default";q=5;w=1 | 1`)
	want(t, ask("6"), `429  | "default";q=5;w=1 | `) // never
	if told != nil {
		t.Error(told)
	}
	want(t, ask("-1"), `500  | "default";q=5;w=1 | `)
	if told == nil {
		t.Error("a cost below 0 was not told of")
	}
}

func TestServerAway(t *testing.T) {
	s := start(t, "0")
	told := 0
	tell := func(*http.Request, error) { told++ }
	c := redis.NewClient(&redis.Options{Addr: s.addr})
	defer c.Close()
	open := serve(t, Options{Client: c, Limits: three, OnError: tell})
	closed := serve(t, Options{Client: c, Limits: three, FailClosed: true, Refused: func(w http.ResponseWriter, _ *http.Request, status int) { w.WriteHeader(status) }})
	s.stop()
	for range 3 {
		want(t, open("ann"), "200 "+policy)
		want(t, closed("ann"), "503 "+policy+"1")
	}
	if told != 3 {
		t.Errorf("%d errors were told of", told)
	}
	_, port, _ := net.SplitHostPort(s.addr)
	start(t, port)
	for end := time.Now().Add(10 * time.Second); !strings.HasPrefix(closed("bob"), "200"); {
		if time.Now().After(end) {
			t.Fatal("it was not asked again")
		}
	}
}

func TestServerSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// The client's own patience is longer than the middleware's.
	c := redis.NewClient(&redis.Options{Addr: l.Addr().String(), ReadTimeout: time.Minute})
	defer c.Close()
	began := time.Now()
	want(t, serve(t, Options{Client: c, Limits: three})("ann"), "200 "+policy)
	want(t, serve(t, Options{Client: c, Limits: three, FailClosed: true, Timeout: 10 * time.Millisecond})("ann"), "503 "+policy+"1")
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestMistakes(t *testing.T) {
	s := start(t, "0")
	s.do(t, "SET", "text", "x")
	for _, l := range []Limit{{Rule: "CONC 5"}, {Rule: "FIXED 5"}, {Rule: "FIXED 5 1000 PEEK"}, {Rule: "LOG 1 1000", Policy: `a"b`}, {Rule: "LOG 1 99999999999999999999"}, {Key: "none", Rule: "LOG 1 1000"}} {
		if l.Key = map[string]string{"": "k", "none": ""}[l.Key]; l.Policy == "" {
			l.Policy = "p"
		}
		want(t, serve(t, Options{Client: s.client, Limits: func(*http.Request) []Limit { return []Limit{l} }})("ann"), "500  |  | ")
	}
	want(t, serve(t, Options{Client: s.client, Limits: func(*http.Request) []Limit { return []Limit{{Key: "text", Rule: "LOG 1 1000"}} }})("ann"), `500  | "default";q=1;w=1 | `)
	if _, err := New(Options{Client: s.client}); err == nil {
		t.Error("no limits are needed")
	}
}
