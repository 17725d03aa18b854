// redis-cli in ways that need a server, a terminal or a file of their own: passwords, sockets, TLS, a cluster, hints as
// one types, and the modes that refuse or end by themselves.
package tools

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// each runs cases on both servers.
func each(t *testing.T, cli string, p pair, cases []cliCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.args = append([]string{"-p", "{port}"}, c.args...)
			same(t, cli, p, c)
		})
	}
}

// atTerminal is a run at a terminal, where lines are typed, until it ends or prints something.
func atTerminal(until string, line []string, typed ...string) call {
	c := call{args: line, typed: append([]string{}, typed...)}
	if until != "" {
		c.until = regexp.MustCompile(until)
	}
	return c
}

func TestCLIAtATerminal(t *testing.T) {
	cli := find(t, "redis-cli")
	p := start(t)
	p.load(t, people)
	sizes := append([]mask{masked(`\d+(\.\d+)?[KMG]?B?`, "#"), masked(`[ \r]+`, " ")}, masked(`\(\+#\)`, "(+#)"))
	where := masked(`127.0.0.1:\d+`, "address")
	each(t, cli, p, []cliCase{
		{name: "hints", call: atTerminal(`set k v\x1b\[0;90;49m value \[NX`, nil, "set k v "), masks: []mask{where}, holds: "[NX|XX] [GET] [EX seconds"},
		{name: "hints of a subcommand", call: atTerminal(`SKIPME(?s:.*?)kill i`, nil, "client kill i"), masks: []mask{where}, holds: "SKIPME"},
		{name: "completion", call: atTerminal("", nil, "zrangeb\t\t\r", "\x04"), masks: []mask{where}, holds: "ZRANGEBYSCORE"},
		{name: "replies", call: atTerminal("", nil, "hgetall hash:b\r", "multi\r", "incr str:number\r", "decr str:number\r", "exec\r", "select 3\r", "get three\r", "\x04"), masks: []mask{where}, holds: "(TX)>"},
		{name: "--stat", call: atTerminal(`(?s)\(\+\d+\).*?\n.*?\(\+\d+\)`, []string{"--stat", "-i", "0.05"}), masks: sizes, holds: "keys"},
		{name: "--latency", call: atTerminal(`max: \d+.*?\(\d+ samples\)`, []string{"--latency"}), masks: sizes, holds: "avg"},
		{name: "--latency-history", call: atTerminal(`seconds range`, []string{"--latency-history", "-i", "0.05"}), masks: []mask{masked(`(?s)min.*--.*seconds`, "--")}, holds: "range"},
		{name: "--latency-dist", call: atTerminal(`(?s)60 seconds.*?\?\x1b\[0m\r\n`, []string{"--latency-dist", "-i", "0.05"}), masks: []mask{masked(`\x1b\[[0-9;]*m`, "")}, holds: "#"},
		{name: "SUBSCRIBE", call: atTerminal(`1\) "subscribe"\r\n2\) "a"\r\n3\) \(integer\) 1\r\n.*Reading messages`, nil, "subscribe a\r"), masks: []mask{where}, holds: "Reading messages"},
		{name: "--bigkeys", call: atTerminal("", []string{"--bigkeys"}), masks: []mask{masked(`(?s)\x1b.*found so far.*-------- summary`, ""), masked(`.*found so far.*\n`, "")}, holds: "summary"},
	})
	if testing.Short() {
		return
	}
	t.Run("--lru-test", func(t *testing.T) {
		if got := run(t, cli, p.limitkv, atTerminal(`\d+ Gets/sec \| Hits: `, []string{"-p", "{port}", "--lru-test", "1000"})); !strings.Contains(got.output, "Hits") {
			t.Errorf("exit code %d: %s", got.code, got.output)
		}
	})
	t.Run("--intrinsic-latency", func(t *testing.T) {
		got := run(t, cli, p.limitkv, call{args: []string{"-p", "{port}", "--intrinsic-latency", "1"}})
		if got.code != 0 || !strings.Contains(got.output, "total runs") {
			t.Errorf("exit code %d: %s", got.code, got.output)
		}
	})
}

func TestCLIHotKeys(t *testing.T) {
	cli := find(t, "redis-cli")
	p := start(t, "--maxmemory-policy", "allkeys-lfu")
	p.load(t, "SET hot one\nSET cold two\n"+strings.Repeat("GET hot\n", 2000)+"SET loop three\nEVAL \"for i=1,2000 do redis.call('GET', KEYS[1]) end\" 1 loop")
	each(t, cli, p, []cliCase{
		{name: "--hotkeys", call: args("--hotkeys"), masks: []mask{masked(`^\[\d.*\n`, ""), masked(`counter: (1[3-9]|[23]\d)\b`, "counter: many")}, sorted: true, holds: `keyname: "hot"`},
	})
}

func TestCLIPasswords(t *testing.T) {
	cli := find(t, "redis-cli")
	p := start(t)
	p.load(t, "ACL SETUSER ann on >pw ~a* +get +set +acl|whoami +ping +command\nCONFIG SET requirepass secret")
	password := func(env string, c call) call { c.env = []string{env}; return c }
	each(t, cli, p, []cliCase{
		{name: "none", call: args("GET", "a"), holds: "NOAUTH"},
		{name: "-a", call: args("-a", "secret", "ACL", "WHOAMI"), holds: "default"},
		{name: "-a warns", call: args("-a", "secret", "PING"), holds: "Warning"},
		{name: "-a that is wrong", call: args("-a", "wrong", "PING"), holds: "WRONGPASS"},
		{name: "--user --pass", call: args("--user", "ann", "--pass", "pw", "--no-auth-warning", "ACL", "WHOAMI"), holds: "ann"},
		{name: "--user that may not", call: args("--user", "ann", "--pass", "pw", "--no-auth-warning", "GET", "b"), holds: "NOPERM"},
		{name: "REDISCLI_AUTH", call: password("REDISCLI_AUTH=secret", args("ACL", "WHOAMI")), holds: "default"},
		{name: "-u", call: args("-u", "redis://ann:pw@{addr}", "ACL", "WHOAMI"), holds: "ann"},
		{name: "-u of the default user", call: args("-u", "redis://default:secret@{addr}/2", "ACL", "WHOAMI"), holds: "default"},
		{name: "--askpass", call: piped("secret\n", "--askpass", "ACL", "WHOAMI"), holds: "default"},
		{name: "AUTH at the prompt", call: piped("GET a\nAUTH secret\nACL WHOAMI\nAUTH ann pw\nACL WHOAMI\nDEL a\nAUTH ann no\n"), holds: "ann"},
		{name: "-3 -a", call: args("-3", "-a", "secret", "--no-auth-warning", "ACL", "WHOAMI"), holds: "default"},
		{name: "--pipe", call: piped("SET a 1\r\nGET a\r\n", "-a", "secret", "--no-auth-warning", "--pipe"), holds: "errors: 0, replies: 2"},
		{name: "--scan", call: args("-a", "secret", "--no-auth-warning", "--scan"), holds: "a"},
	})
}

func TestCLISocket(t *testing.T) {
	cli := find(t, "redis-cli")
	for _, s := range []*peer.Server{
		peer.Redis(t, required, "--unixsocket", filepath.Join(t.TempDir(), "s")),
		peer.LimitKV(t, "--unixsocket", filepath.Join(t.TempDir(), "s")),
	} {
		v, err := s.Dial(t).Do("CONFIG", "GET", "unixsocket")
		if err != nil || len(v.Items) != 2 {
			t.Fatal(v, err)
		}
		got := run(t, cli, s, call{args: []string{"-s", v.Items[1].Text}, stdin: "SET a b\nGET a\nCLIENT LIST\n"})
		if !strings.HasPrefix(got.output, "OK\nb\nid=") || got.code != 0 {
			t.Errorf("%s: exit code %d: %s", s.Name, got.code, got.output)
		}
		got = run(t, cli, s, call{args: []string{"-s", v.Items[1].Text, "--bigkeys"}})
		if !strings.Contains(got.output, `Biggest string found "a" has 1 bytes`) {
			t.Errorf("%s: %s", s.Name, got.output)
		}
	}
}

// TestCLIRefused: what limitkv does not do says so, and nothing hangs.
func TestCLIRefused(t *testing.T) {
	cli := find(t, "redis-cli")
	s := peer.LimitKV(t)
	file := filepath.Join(t.TempDir(), "script.lua")
	writeFile(t, file, "return redis.call('SET', KEYS[1], ARGV[1])")
	for _, c := range []struct{ line, holds string }{
		{"--ldb --eval " + file + " k , v", "session can't start:\n(error) ERR limitkv has no Lua debugger"},
		{"--ldb-sync-mode --eval " + file + " k , v", "session can't start:\n(error) ERR limitkv has no Lua debugger"},
	} {
		got := run(t, cli, s, call{args: append([]string{"-p", "{port}"}, strings.Fields(c.line)...)})
		if !strings.Contains(got.output, c.holds) {
			t.Errorf("%s prints\n%s", c.line, got.output)
		}
	}
	if v, err := s.Dial(t).Do("EXISTS", "k"); err != nil || v.Text != "0" {
		t.Errorf("the script that was to be debugged ran: %v, %v", v, err)
	}
}

// cluster starts both as clusters of one node.
func cluster(t *testing.T) pair {
	p := start(t, "--cluster-enabled", "yes")
	c := p.redis.Dial(t)
	if v, err := c.Do("CLUSTER", "ADDSLOTSRANGE", "0", "16383"); err != nil || v.IsError() {
		t.Fatal(v, err)
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if v, err := c.Do("CLUSTER", "INFO"); err != nil || time.Since(began) > 10*time.Second {
			t.Fatal(v, err)
		} else if strings.Contains(v.Text, "cluster_state:ok") {
			return p
		}
	}
}

func TestCLICluster(t *testing.T) {
	cli := find(t, "redis-cli")
	p := cluster(t)
	p.load(t, "SET a 1\nSET b 2\nSET {a}c 3")
	ids := []mask{masked(`[0-9a-f]{40}`, "id"), masked(`[0-9a-f]{8}\.\.\.`, "id..."), masked(`127\.0\.0\.1:\d+`, "address"), masked(` +`, " ")}
	each(t, cli, p, []cliCase{
		{name: "info", call: args("--cluster", "info", "{addr}"), masks: ids, holds: "3 keys"},
		{name: "check", call: args("--cluster", "check", "{addr}"), masks: ids, holds: "All 16384 slots covered"},
		{name: "check of a node", call: args("--cluster", "check", "{host}", "{port}"), masks: ids, holds: "covered"},
		{name: "fix", call: args("--cluster", "fix", "{addr}"), masks: ids, holds: "covered"},
		{name: "call", call: args("--cluster", "call", "{addr}", "GET", "a"), masks: ids, holds: "1"},
		{name: "rebalance", call: args("--cluster", "rebalance", "{addr}"), masks: ids, holds: "No rebalancing needed"},
		{name: "create", call: args("--cluster", "create", "{addr}", "{addr}", "{addr}"), masks: ids, holds: "ERR"},
		{name: "-c", call: args("-c", "MGET", "a", "{a}c"), holds: "3"},
		{name: "-c of two slots", call: args("-c", "MGET", "a", "b"), holds: "CROSSSLOT"},
		{name: "-c at the prompt", call: piped("SET x 1\nGET x\nCLUSTER KEYSLOT x\nREADONLY\nDEL x\n", "-c"), holds: "16287"},
		{name: "--scan", call: args("-c", "--scan"), sorted: true, holds: "{a}c"},
		{name: "--bigkeys", call: args("-c", "--bigkeys"), masks: []mask{progress, masked(`^Biggest.*`, "")}, holds: "3 strings"},
	})
}

// TestCLITLS needs a redis-cli that was built with TLS, and limitkv alone.
func TestCLITLS(t *testing.T) {
	cli := find(t, "redis-cli")
	if help, _ := exec.Command(cli, "--help").CombinedOutput(); !strings.Contains(string(help), "--tls") {
		other, err := exec.LookPath("redis-cli")
		if err != nil {
			t.Skip("this redis-cli has no TLS")
		}
		if help, _ := exec.Command(other, "--help").CombinedOutput(); !strings.Contains(string(help), "--tls") {
			t.Skip("this redis-cli has no TLS")
		}
		cli = other
	}
	dir := t.TempDir()
	certificates(t, dir)
	port, err := peer.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	s := peer.LimitKV(t, "--tls-port", port, "--tls-cert-file", at("server.crt"), "--tls-key-file", at("server.key"), "--tls-ca-cert-file", at("ca.crt"))
	secure := []string{"-p", port, "--tls", "--cacert", at("ca.crt")}
	client := slices.Concat(secure, []string{"--cert", at("client.crt"), "--key", at("client.key")})
	for _, c := range []struct {
		args  []string
		stdin string
		holds string
	}{
		{slices.Concat(client, []string{"SET", "a", "b"}), "", "OK"},
		{slices.Concat(client, []string{"--bigkeys"}), "", "has 1 bytes"},
		{slices.Concat(client, []string{"--pipe"}), "SET c d\r\nGET c\r\n", "errors: 0, replies: 2"},
		{slices.Concat(client, []string{"-u", "rediss://127.0.0.1:" + port, "GET", "a"}), "", "b"},
		{slices.Concat(secure, []string{"GET", "a"}), "", "Error"}, // without a certificate of its own
	} {
		if got := run(t, cli, s, call{args: c.args, stdin: c.stdin}); !strings.Contains(got.output, c.holds) {
			t.Errorf("%v: exit code %d: %s", c.args, got.code, got.output)
		}
	}
}
