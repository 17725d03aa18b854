// The page in a real browser: what its views show, whom they let do what, and whether everybody can use them.
package tools

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// views are what the page shows of what native made.
var views = []struct{ path, has string }{
	{"overview", "limitkv 0."},
	{"overview", "Locks held 1"},
	{"limiters", "2 limiters, those that refuse most first"},
	{"limiters/api:b", "1 limiters"},
	{"limiter/api:bob", "Granted, refused 1, 1"},
	{"queues", "jobs 2 1 0"},
	{"queue/chores", "1 schedules"},
	{"queue/chores", "sweep EVERY 3600000"},
	{"queue/jobs", "first <payload>&"},
	{"queue/jobs/DELAYED/later", "1 entries that are delayed"},
	{"locks", "stock:7 alone worker-1"},
	{"lock/stock:7", "Holders: 1"},
	{"slow", "0 slow commands"},
	{"console", "Command"},
	{"queue/none", "ERR no such key"},
}

func TestPageInBrowser(t *testing.T) {
	installed(t, "chromium")
	s, url := site(t, "--http-write", "yes")
	lines(t, s, native)
	b := openBrowser(t)
	for _, view := range views {
		b.show(url + "/#/" + view.path)
		b.says(view.has)
	}
}

// axe is the source of axe-core, which looks for what keeps people out of a page: fetched once, into the user's cache.
const axeVersion = "4.10.3"

func axe(t *testing.T) string {
	t.Helper()
	base, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "limitkv-tools", "axe-core-"+axeVersion)
	file := filepath.Join(dir, "node_modules", "axe-core", "axe.min.js")
	if text, err := os.ReadFile(file); err == nil {
		return string(text)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", dir, "axe-core@"+axeVersion).CombinedOutput()
	text, readErr := os.ReadFile(file)
	switch {
	case readErr == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("axe-core is not to be had: %v\n%s", err, out)
	default:
		t.Skipf("axe-core is not to be had: %v\n%s", err, out)
	}
	return string(text)
}

// Every view passes axe's rules, in light and dark; on a phone nothing is beside the screen; and the keyboard reaches
// everything, and shows where it is.
func TestPageForEverybody(t *testing.T) {
	installed(t, "chromium")
	source := axe(t)
	s, url := site(t, "--http-write", "yes", "--slowlog-log-slower-than", "0")
	lines(t, s, native)
	b := openBrowser(t)
	seen := map[string]bool{}
	for _, view := range views {
		if seen[view.path] {
			continue
		}
		seen[view.path] = true
		b.display(1280, false)
		b.show(url + "/#/" + view.path)
		if has := view.has; has != "0 slow commands" {
			b.says(has)
		}
		b.eval(source, nil)
		for _, screen := range []struct {
			width int
			dark  bool
		}{{1280, false}, {360, true}} {
			b.display(screen.width, screen.dark)
			var found []string
			b.eval("axe.run(document, { resultTypes: ['violations'] }).then(r => r.violations.map(v => v.id + ': ' + v.help + ': ' + v.nodes.map(n => n.html).join(' ')))", &found)
			for _, problem := range found {
				t.Errorf("%s, %+v: %.500s", view.path, screen, problem)
			}
			var beside int
			b.eval("document.documentElement.scrollWidth - innerWidth", &beside)
			if beside > 0 {
				t.Errorf("%s, %+v: %d pixels are beside the screen", view.path, screen, beside)
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d views", len(seen))
	}

	b.display(1280, false)
	b.show(url + "/#/queue/jobs")
	b.says("first <payload>&")
	var all []string
	const reached = "[...document.querySelectorAll('a[href], button, input, select, [tabindex=\"0\"]')].filter(e => e.getClientRects().length)"
	b.eval("globalThis.all = "+reached+"; all.map(e => e.textContent || e.name)", &all)
	b.eval("globalThis.focused = new Set(); document.activeElement.blur()", nil)
	for range len(all) {
		b.press("Tab", 9)
		var visible bool
		b.eval("focused.add(document.activeElement), document.activeElement.matches(':focus-visible') && getComputedStyle(document.activeElement).outlineStyle !== 'none'", &visible)
		if !visible {
			var where string
			b.eval("document.activeElement.outerHTML", &where)
			t.Errorf("the keyboard is at %.200s, and nothing shows it", where)
		}
	}
	var missed []string
	b.eval("all.filter(e => !focused.has(e)).map(e => e.outerHTML)", &missed)
	if len(missed) > 0 || len(all) < 20 {
		t.Errorf("of %d the keyboard does not reach %q", len(all), missed)
	}
}

// A user sees what he may do, and no more.
func TestPageAsksForRights(t *testing.T) {
	installed(t, "chromium")
	s, url := site(t, "--http-write", "yes")
	lines(t, s, native+"\nACL SETUSER clerk on >pw ~* &* +@read +@connection +rl.info +dq.info +dq.peek +lk.info +dq.set +dq.add +rl.release +info +acl|whoami +command\nCONFIG SET requirepass secret")
	b := openBrowser(t)
	for _, x := range []struct {
		user, password, path, shows string
		may, mayNot                 []string
	}{
		{"default", "secret", "limiter/api:bob", "Granted, refused 1, 1", []string{"Set", "Set in shadow", "Give everything back", "Delete", "Record"}, nil},
		{"clerk", "pw", "limiter/api:bob", "Granted, refused 1, 1", []string{"Give everything back", "Record"}, []string{"Set", "Set in shadow", "Delete"}},
		{"default", "secret", "queue/jobs", "first <payload>&", []string{"Pause", "Delete", "Remove", "Add", "Retry"}, nil},
		{"clerk", "pw", "queue/jobs", "first <payload>&", []string{"Pause", "Add"}, []string{"Delete", "Remove", "Retry"}},
		{"default", "secret", "lock/stock:7", "Holders: 1", []string{"Take away"}, nil},
		{"clerk", "pw", "lock/stock:7", "Holders: 1", nil, []string{"Take away"}},
	} {
		b.signIn(x.user, x.password)
		b.show(url + "/#/" + x.path)
		b.says(x.shows)
		for i, label := range append(x.may, x.mayNot...) {
			var there bool
			b.eval(fmt.Sprintf("[...document.querySelectorAll('button')].some(b => b.textContent === %q)", label), &there)
			if there != (i < len(x.may)) {
				t.Errorf("%s, %s: button %s: %v", x.user, x.path, label, there)
			}
		}
	}
}

// What a rule would have done with calls is what the server does with them.
func TestTrial(t *testing.T) {
	installed(t, "chromium")
	s, url := site(t, "--test")
	c := s.Dial(t)
	number := func(args ...string) string {
		t.Helper()
		v, err := c.Do(args...)
		if err != nil || v.IsError() {
			t.Fatal(args, v, err)
		}
		if len(v.Items) > 0 {
			return v.Items[0].Text
		}
		return v.Text
	}
	b := openBrowser(t)
	b.show(url)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	for i, rule := range []string{"GCRA 10 1000 BURST 20", "FIXED 7 1000", "LOG 9 2000", "WINDOW 8 1500", "GCRA 5 1000 LOG 30 10000"} {
		now, granted := int64(1_700_000_000_000), 0
		number("LKV.CLOCK", "FREEZE", fmt.Sprint(now))
		var calls [][2]int64
		for range 200 {
			by, n := random.Int64N(400), 1+random.Int64N(5)
			now += by
			number("LKV.CLOCK", "ADVANCE", fmt.Sprint(by))
			calls = append(calls, [2]int64{now, n})
			for range n {
				if number(append([]string{"RL.ACQUIRE", fmt.Sprint("trial:", i), "1"}, strings.Fields(rule)...)...) == "0" {
					granted++
				}
			}
		}
		text, _ := json.Marshal(calls)
		var got int
		b.eval(fmt.Sprintf("import('/trial.js').then(m => m.replay(m.parse(%q), %s))", rule, text), &got)
		if got != granted || granted < 100 || granted == 600 {
			t.Errorf("seed %d, %s: the page says %d were granted, the server did %d", seed, rule, got, granted)
		}
	}
	for _, rule := range []string{"", "CAL 5 DAY", "GCRA 5", "FIXED 0 1", "FIXED 5 1 BURST 2", "LOG 5 1000 x"} {
		var none bool
		b.eval(fmt.Sprintf("import('/trial.js').then(m => m.parse(%q) === null)", rule), &none)
		if !none {
			t.Errorf("%q is no rule that can be tried", rule)
		}
	}

	// Recorded from a limiter in use.
	number("LKV.CLOCK", "RESUME")
	number("RL.SET", "busy", "FIXED", "1", "3600000")
	number("RL.ACQUIRE", "busy")
	b.show(url + "/#/limiter/busy")
	b.click("Record")
	b.says("Recorded")
	for range 4 {
		number("RL.ACQUIRE", "busy")
	}
	b.says("4 calls")
	b.says("The limiter granted 0 (0 %)")
	b.eval("document.querySelector('input[name=trial]').value = 'LOG 3 3600000'; document.querySelector('input[name=trial]').dispatchEvent(new Event('input'))", nil)
	b.says("This rule would have granted 3 (75 %) and refused 1 (25 %)")
	b.click("Stop")
}

// A queue of a million is as quick to look at as a small one, and no page has more than a thousand rows.
func TestPageOfManyEntries(t *testing.T) {
	installed(t, "chromium")
	const entries, queues = 1_000_000, 1500
	s, url := site(t)
	c := s.Dial(t)
	for n := 0; n < entries; {
		var b []byte
		const batch = 10_000
		for range batch {
			b = peer.AppendCommand(b, "DQ.ADD", "large", "ID", fmt.Sprint(n), "payload")
			n++
		}
		if err := c.SendRaw(b); err != nil {
			t.Fatal(err)
		}
		for range batch {
			if v, err := c.Receive(); err != nil || v.IsError() {
				t.Fatal(v, err)
			}
		}
	}
	for n := range queues {
		if v, err := c.Do("DQ.ADD", fmt.Sprint("queue:", n), "payload"); err != nil || v.IsError() {
			t.Fatal(v, err)
		}
	}
	best := time.Hour
	for range 5 {
		began := time.Now()
		for _, path := range []string{"/", "/app.js", "/server.js", "/elements.js", "/queues.js", "/find.js", "/style.css"} {
			get(t, url+path)
		}
		answer, err := http.Post(url+"/api/commands", "application/json", strings.NewReader(
			`{"commands":[["DQ.INFO","large"],["DQ.PEEK","large","READY","FULL","COUNT","100"]]}`))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || !strings.Contains(string(text), `"ready":1000000`) {
			t.Fatalf("%.300s %v", text, err)
		}
		best = min(best, time.Since(began))
	}
	if t.Logf("all that the page of a queue of %d needs came in %v", entries, best); best > 200*time.Millisecond {
		t.Errorf("it took %v", best)
	}
	b := openBrowser(t)
	for _, path := range []string{"queue/large", "queue/large/READY/999999", "queues", "queues/queue"} {
		b.show(url + "/#/" + path)
		if !b.until("document.querySelector('tbody tr')") {
			t.Errorf("%s has no rows", path)
		}
		var rows, took float64
		b.eval("document.querySelectorAll('tr').length", &rows)
		if rows < 2 || rows > 1001 {
			t.Errorf("%s has %v rows", path, rows)
		}
		// When the last answer was there, and a frame later, which is the one that shows it.
		b.eval("new Promise(done => requestAnimationFrame(() => done(Math.max(...performance.getEntriesByType('resource').map(e => e.responseEnd)))))", &took)
		t.Logf("%s is shown after %.0f ms", path, took)
	}
}
