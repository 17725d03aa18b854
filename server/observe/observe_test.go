package observe_test

// A server over HTTP, with real requests.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
	"github.com/limitkv/limitkv/server"
)

// site is a server with its page.
type site struct {
	*livetest.Server
	t    *testing.T
	url  string
	user *[2]string // the user of requests, nil for none
}

func start(t *testing.T) *site {
	s := livetest.StartWith(t, func(s *server.Server) {
		if err := s.Config.Find("http").Set("0"); err != nil {
			t.Fatal(err)
		}
	})
	return &site{Server: s, t: t, url: "http://" + s.Config.Value("http")}
}

// send makes a request with a body, "" for none, and returns the status and the answer.
func (s *site) send(path, body string, headers ...string) (int, string) {
	s.t.Helper()
	method := "GET"
	if body != "" {
		method = "POST"
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	if s.user != nil {
		r.SetBasicAuth(s.user[0], s.user[1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func (s *site) wants(path string, status int, part string, headers ...string) {
	s.t.Helper()
	if got, text := s.send(path, "", headers...); got != status || !strings.Contains(text, part) {
		s.t.Errorf("%s %q: %d %.200q, want %d and %q", path, headers, got, text, status, part)
	}
}

// run runs commands as the page does.
func (s *site) run(list ...[]string) []any {
	s.t.Helper()
	body, _ := json.Marshal(map[string]any{"commands": list})
	status, text := s.send("/api/commands", string(body))
	var replies []any
	if err := json.Unmarshal([]byte(text), &replies); status != 200 || err != nil {
		s.t.Fatalf("%q: %d %.200q %v", list, status, text, err)
	}
	return replies
}

func (s *site) runs(want any, words ...string) {
	s.t.Helper()
	if got := s.run(words)[0]; !reflect.DeepEqual(got, want) {
		s.t.Errorf("%q: %#v, want %#v", words, got, want)
	}
}

func refused(text string) any { return map[string]any{"error": text} }

func TestAlive(t *testing.T) {
	s := start(t)
	s.wants("/healthz", 200, "ok\n")
	s.wants("/readyz", 200, "ok\n")
	s.wants("/missing", 404, "")
	s.Loading.Begin(0, false)
	s.wants("/healthz", 200, "ok\n")
	s.wants("/readyz", 503, "LOADING")
	s.Loading.End()
	s.RefuseWrites("MISCONF the disk is full")
	s.wants("/readyz", 503, "MISCONF the disk is full")
	s.RefuseWrites("")
	s.wants("/readyz", 200, "ok\n")
}

var sample = regexp.MustCompile(`^(limitkv_[a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)$`)

// samples parses the metrics, and fails if they are not in Prometheus's format.
func samples(t *testing.T, text string) map[string]float64 {
	t.Helper()
	values := make(map[string]float64)
	typed := make(map[string]string)
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(name, " ")
			if typed[name] != "" {
				t.Errorf("%s is described twice", name)
			}
			if typed[name] = kind; (kind == "counter") != strings.HasSuffix(name, "_total") {
				t.Errorf("%s is a %s", name, kind)
			}
			continue
		}
		if strings.HasPrefix(line, "# HELP ") {
			if !strings.HasSuffix(line, ".") {
				t.Errorf("help is no sentence: %s", line)
			}
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("no sample: %q", line)
		}
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(m[1], "_bucket"), "_sum"), "_count")
		if typed[m[1]] == "" && typed[base] != "histogram" {
			t.Errorf("%s has no type", m[1])
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		key := m[1]
		if m[2] != "" {
			key += "{" + m[2] + "}"
		}
		if _, twice := values[key]; twice {
			t.Errorf("%s is told twice", key)
		}
		values[key] = v
	}
	return values
}

func TestMetrics(t *testing.T) {
	s := start(t)
	c := s.Client()
	c.Do("RL.SET", "limiter", "FIXED", "2", "100000")
	for range 3 {
		c.Do("RL.ACQUIRE", "limiter")
	}
	c.Do("DQ.ADD", "queue", "payload")
	c.Do("DQ.ADD", "queue", "DELAY", "100000", "later")
	c.Do("DQ.POP", "queue", "LEASE", "100000")
	c.Do("LK.ACQUIRE", "lock", "owner", "100000")
	c.Do("SET", "text", "x", "PX", "100000")
	c.Do("INCR", "text")
	c.Do("SET", "text")
	_, text := s.send("/metrics", "")
	got := samples(t, text)
	for name, want := range map[string]float64{
		"limitkv_limiters":                                                 1,
		"limitkv_limiter_calls_granted_total":                              2,
		"limitkv_limiter_calls_refused_total":                              1,
		"limitkv_queues":                                                   1,
		"limitkv_queue_entries_waiting":                                    1,
		"limitkv_queue_entries_leased":                                     1,
		"limitkv_queue_entries_delivered_total":                            1,
		"limitkv_locks":                                                    1,
		"limitkv_lock_calls_granted_total":                                 1,
		`limitkv_keys{db="0"}`:                                             4,
		`limitkv_keys_with_deadline{db="0"}`:                               1,
		`limitkv_keys_by_type{type="delayqueue"}`:                          1,
		`limitkv_command_duration_seconds_count{command="set"}`:            1,
		`limitkv_command_duration_seconds_bucket{command="set",le="+Inf"}`: 1,
		`limitkv_command_failures_total{command="incr"}`:                   1,
		`limitkv_command_rejections_total{command="set"}`:                  1,
		`limitkv_errors_total{code="ERR"}`:                                 2,
		"limitkv_loading":                                                  0,
		"limitkv_log_ok":                                                   1,
		"limitkv_log_enabled":                                              0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v (%v), want %v", name, v, ok, want)
		}
	}
	if len(got) < 100 {
		t.Errorf("there are %d samples", len(got))
	}
	s.Keyspace.Clock.Freeze(time.Now().Add(time.Hour).UnixMicro())
	_, later := s.send("/metrics", "")
	if off := samples(t, later)["limitkv_clock_offset_seconds"]; off < 3000 || off > 3600 {
		t.Errorf("the clock is ahead by %v s, want an hour", off)
	}
	// Later buckets include earlier ones.
	last := map[string]float64{}
	for line := range strings.Lines(text) {
		if m := sample.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil && strings.HasSuffix(m[1], "_bucket") {
			command, _, _ := strings.Cut(m[2], ",")
			v, _ := strconv.ParseFloat(m[3], 64)
			if v < last[command] {
				t.Errorf("%s falls from %v", line, last[command])
			}
			last[command] = v
		}
	}
}

// A scrape of many keys takes no longer than one of a single key.
func TestScrapeOfManyKeys(t *testing.T) {
	s := start(t)
	c := s.Client()
	c.Want("OK", "DEBUG", "POPULATE", "200000")
	c.Do("DQ.ADD", "queue", "payload")
	s.send("/metrics", "")
	best := time.Hour
	for range 20 {
		began := time.Now()
		if status, text := s.send("/metrics", ""); status != 200 || !strings.Contains(text, `limitkv_keys{db="0"} 200001`) {
			t.Fatalf("%d %.300q", status, text)
		}
		best = min(best, time.Since(began))
	}
	t.Logf("the fastest scrape took %v", best)
	livetest.Measured(t)
	if best > 5*time.Millisecond {
		t.Errorf("a scrape takes %v", best)
	}
}

func TestSignIn(t *testing.T) {
	s := start(t)
	c := s.Client()
	c.Want("OK", "CONFIG", "SET", "requirepass", "secret")
	c.Want("OK", "ACL", "SETUSER", "reader", "on", ">word", "+ping", "~*", "+get")
	for _, path := range []string{"/healthz", "/readyz", "/"} {
		s.wants(path, 200, "")
	}
	s.wants("/metrics", 401, "NOAUTH")
	s.user = &[2]string{"", "wrong"}
	s.wants("/metrics", 401, "WRONGPASS")
	s.user = &[2]string{"", "secret"}
	s.wants("/metrics", 200, "limitkv_build_info")
	s.user = &[2]string{"default", "secret"}
	s.wants("/metrics", 200, "limitkv_build_info")
	s.wants("/metrics", 200, "limitkv_build_info", "Host", "limits.example:9121") // a password keeps others out
	s.user = &[2]string{"reader", "word"}
	s.wants("/metrics", 403, "NOPERM")
	s.runs(nil, "GET", "a")
	s.runs(refused("NOPERM User reader has no permissions to run the 'strlen' command"), "STRLEN", "a")
	s.user = nil
	if status, text := s.send("/api/commands", `{"commands":[["GET","a"]]}`); status != 401 || !strings.Contains(text, "NOAUTH") {
		t.Errorf("%d %q", status, text)
	}
}

// The page asks which commands its user may run, and nothing runs.
func TestTry(t *testing.T) {
	s := start(t)
	c := s.Client()
	c.Want("OK", "CONFIG", "SET", "requirepass", "secret")
	c.Want("OK", "ACL", "SETUSER", "clerk", "on", ">word", "~jobs*", "+dq.add", "+get")
	try := func() string {
		t.Helper()
		status, text := s.send("/api/commands", `{"try":true,"commands":[["GET","jobs"],["DQ.ADD","jobs","x"],["DQ.ADD","other","x"],["DEL","jobs"],["DEL"],["NOPE"],[],["MULTI"]]}`)
		if status != 200 {
			return fmt.Sprint(status)
		}
		return strings.TrimSpace(text)
	}
	const never = `"ERR MULTI is for a connection of one's own, which the page does not have"`
	const only = `"NOPERM the page only looks: the parameter http-write lets it do `
	if got := try(); got != "401" {
		t.Errorf("nobody: %s", got)
	}
	s.user = &[2]string{"", "secret"}
	if got, want := try(), `["",`+only+`DQ.ADD",`+only+`DQ.ADD",`+only+`DEL",`+only+`DEL","ERR Command 'NOPE' not found","ERR an empty command",`+never+`]`; got != want {
		t.Errorf("read-only: %s\nwant %s", got, want)
	}
	c.Want("OK", "CONFIG", "SET", "http-write", "yes")
	if got, want := try(), `["","","","","ERR wrong number of arguments for 'del' command","ERR Command 'NOPE' not found","ERR an empty command",`+never+`]`; got != want {
		t.Errorf("default: %s\nwant %s", got, want)
	}
	s.user = &[2]string{"clerk", "word"}
	if got, want := try(), `["","","NOPERM User clerk has no permissions to access the 'other' key","NOPERM User clerk has no permissions to run the 'del' command",`+
		`"ERR wrong number of arguments for 'del' command","ERR Command 'NOPE' not found","ERR an empty command",`+never+`]`; got != want {
		t.Errorf("clerk: %s\nwant %s", got, want)
	}
	c.Want("0", "EXISTS", "jobs")
}

func TestReadOnly(t *testing.T) {
	s := start(t)
	only := func(name string) any {
		return refused("NOPERM the page only looks: the parameter http-write lets it do " + name)
	}
	s.runs(only("SET"), "SET", "a", "b")
	s.runs(only("EVAL"), "eval", "return redis.call('set','a','b')", "0")
	s.runs(only("CONFIG SET"), "config", "set", "http-write", "yes")
	s.runs(only("SHUTDOWN"), "SHUTDOWN")
	s.runs(only("CLIENT KILL"), "client", "kill", "id", "1")
	s.runs(only("RL.ACQUIRE"), "RL.ACQUIRE", "a", "PEEK", "FIXED", "1", "1000")
	s.runs("PONG", "PING")
	s.runs(map[string]any{"http-write": "no"}, "CONFIG", "GET", "http-write")
	s.runs(refused("ERR unknown command 'NOPE', with args beginning with: 'a' "), "NOPE", "a")
	s.runs(refused("ERR wrong number of arguments for 'get' command"), "GET")
	c := s.Client()
	c.Want("OK", "CONFIG", "SET", "http-write", "yes")
	s.runs("OK", "SET", "a", "b")
	s.runs("b", "GET", "a")
	for _, words := range [][]string{{"MULTI"}, {"SUBSCRIBE", "a"}, {"MONITOR"}, {"CLIENT", "REPLY", "OFF"}, {"HELLO", "2"}, {"AUTH", "a"}, {"QUIT"}} {
		name := words[0]
		if name == "CLIENT" {
			name = "CLIENT REPLY"
		}
		s.runs(refused("ERR "+name+" is for a connection of one's own, which the page does not have"), words...)
	}
}

// Every command either only reads, or is known to be harmless, or is refused on a read-only page. So a new one is refused.
func TestReadOnlyIsTheDefault(t *testing.T) {
	s := start(t)
	looked := 0
	for _, cmd := range s.Table.All() {
		if cmd.HasSub() {
			continue
		}
		words := strings.Split(cmd.FullName(), "|")
		for len(words) < max(cmd.Arity, -cmd.Arity) {
			words = append(words, "1")
		}
		switch cmd.FullName() {
		case "client|unblock", "command|getkeys": // the latter has a command as an argument
		default:
			changes := s.Keyspace.Dirty.Load()
			s.run(words)
			if s.Keyspace.Dirty.Load() != changes {
				t.Errorf("%q changed something", words)
			}
			looked++
		}
	}
	if looked < 300 {
		t.Errorf("%d commands were tried", looked)
	}
}

// The page's address stays while the server runs. A client that sets the value that it has read, as Redis's own test suite
// does, is not refused.
func TestAddressStays(t *testing.T) {
	s := start(t)
	c := s.Client()
	at := s.Config.Value("http")
	c.Want("OK", "CONFIG", "SET", "http", at)
	for _, other := range []string{"", "9121", "127.0.0.1:0"} {
		c.Want("-ERR CONFIG SET failed (possibly related to argument 'http') - limitkv listens where it was started to", "CONFIG", "SET", "http", other)
	}
	c.Want("-ERR CONFIG SET failed (possibly related to argument 'http') - argument must be a port, or a host and a port", "CONFIG", "SET", "http", "65536")
	s.wants("/healthz", 200, "")
}

func TestReplies(t *testing.T) {
	s := start(t)
	c := s.Client()
	c.Do("CONFIG", "SET", "http-write", "yes")
	c.Do("SET", "binary", "\xff\x00")
	c.Do("ZADD", "z", "1.5", "m", "+inf", "top")
	c.Do("SET", "n", "9007199254740993")
	s.runs(map[string]any{"base64": "/wA="}, "GET", "binary")
	s.runs(nil, "ZSCORE", "none", "m")
	s.runs(1.5, "ZSCORE", "z", "m")
	s.runs("+Inf", "ZSCORE", "z", "top")
	s.runs("9007199254740994", "INCR", "n")
	s.runs([]any{[]any{"m", 1.5}}, "ZRANGE", "z", "0", "0", "WITHSCORES")
	s.runs(true, "EVAL", "redis.setresp(3) return redis.call('ping') and true", "0")
	s.runs([]any{1.0, "two", []any{nil}, map[string]any{"error": "ERR three"}}, "EVAL", "return {1, 'two', {false}, {err='ERR three'}}", "0")
}

// A request whose client has gone ends.
func TestAbandoned(t *testing.T) {
	s := start(t)
	c := s.Client()
	c.Want("OK", "CONFIG", "SET", "http-write", "yes")
	ctx, cancel := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, "POST", s.url+"/api/commands", strings.NewReader(`{"commands":[["BLPOP","list","0"]]}`))
	r.Header.Set("Content-Type", "application/json")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if answer, err := http.DefaultClient.Do(r); err == nil {
			answer.Body.Close()
		}
	}()
	s.Blocked(1)
	cancel()
	<-ended
	s.Blocked(0)
	c.Want("1", "RPUSH", "list", "x")
	c.Want("1", "LLEN", "list")
}

func TestBadRequests(t *testing.T) {
	s := start(t)
	many := `{"commands":[` + strings.TrimSuffix(strings.Repeat(`["PING"],`, 101), ",") + `]}`
	for _, bad := range []struct {
		status  int
		body    string
		headers []string
	}{
		{415, `{"commands":[["PING"]]}`, []string{"Content-Type", "text/plain"}},
		{415, `commands=PING`, []string{"Content-Type", "application/x-www-form-urlencoded"}},
		{403, `{"commands":[["PING"]]}`, []string{"Sec-Fetch-Site", "cross-site"}},
		{403, `{"commands":[["PING"]]}`, []string{"Host", "rebound.example:9121"}},
		{403, `{"commands":[["PING"]]}`, []string{"Host", "127.0.0.1.example"}},
		{400, `{"commands":[]}`, nil},
		{400, many, nil},
		{400, `{"commands":[["PING"]],"more":1}`, nil},
		{400, `{"commands":"PING"}`, nil},
		{400, `{"db":99,"commands":[["PING"]]}`, nil},
		{400, `{"db":-1,"commands":[["PING"]]}`, nil},
		{400, `[`, nil},
		{400, `{"commands":[["ECHO","` + strings.Repeat("x", 1<<20) + `"]]}`, nil},
	} {
		if status, text := s.send("/api/commands", bad.body, bad.headers...); status != bad.status {
			t.Errorf("%.80s %q: %d %.200q, want %d", bad.body, bad.headers, status, text, bad.status)
		}
	}
	for _, host := range []string{"127.0.0.1:1", "[::1]:1", "localhost", "a.localhost:80", "10.0.0.7"} {
		s.wants("/healthz", 200, "ok", "Host", host)
	}
	if n := s.run([]string{"PING"}, []string{}, []string{"PING"}); len(n) != 3 || n[2] != "PONG" {
		t.Errorf("%v", n)
	}
	if status, _ := s.send("/api/commands", strings.Replace(many, `["PING"],`, "", 1)); status != 200 {
		t.Errorf("100 commands: %d", status)
	}
}

func TestPage(t *testing.T) {
	s := start(t)
	s.wants("/", 200, "<title>limitkv</title>")
	status, text := s.send("/", "")
	for _, m := range regexp.MustCompile(`(?:src|href)="([a-z]+\.(?:js|css))"`).FindAllStringSubmatch(text, -1) {
		s.wants("/"+m[1], 200, "")
	}
	if status != 200 || strings.Contains(text, "http://") || strings.Contains(text, "https://") {
		t.Errorf("%d %q", status, text)
	}
	files := 0
	for _, name := range []string{"app", "server", "elements", "find", "overview", "limiters", "queues", "locks", "slow", "console"} {
		status, text := s.send("/"+name+".js", "")
		for _, m := range regexp.MustCompile(`from '\./([a-z]+\.js)'`).FindAllStringSubmatch(text, -1) {
			s.wants("/"+m[1], 200, "")
		}
		if strings.Contains(text, "innerHTML") || strings.Contains(text, "eval(") {
			t.Errorf("%s.js makes markup or code of text", name)
		}
		if status == 200 {
			files++
		}
	}
	if files != 10 {
		t.Errorf("there are %d scripts", files)
	}
}
