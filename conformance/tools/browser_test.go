// A real browser without a window, driven by its own protocol over two pipes.
package tools

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// browser is one with a page. It fails the test for each error of a script, and for what the page's policy refuses.
type browser struct {
	t       *testing.T
	to      *os.File
	session string

	mu      sync.Mutex
	last    int
	waiting map[int]chan answer
}

type answer struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

// patience is how long the browser may take for anything, on a machine that has much else to do.
const patience = time.Minute

func openBrowser(t *testing.T) *browser {
	t.Helper()
	dir, err := os.MkdirTemp("", "limitkv-browser-")
	if err != nil {
		t.Fatal(err)
	}
	in, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(installed(t, "chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--user-data-dir="+dir, "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{in, out} // it reads from 3 and writes to 4
	kill := peer.Group(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	out.Close()
	b := &browser{t: t, to: to, waiting: map[int]chan answer{}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b.read(bufio.NewReader(from))
	}()
	t.Cleanup(func() {
		kill()
		_ = cmd.Wait()
		to.Close()
		<-read
		from.Close()
		_ = os.RemoveAll(dir) // a process of it may still write there
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// read takes answers to who waits for them.
func (b *browser) read(from *bufio.Reader) {
	for {
		text, err := from.ReadBytes(0)
		if err != nil {
			return
		}
		var m struct {
			ID     int
			Method string
			Params json.RawMessage
			answer
		}
		if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
			b.t.Errorf("the browser said %.200q: %v", text, err)
			return
		}
		if m.ID == 0 {
			if m.Method == "Runtime.exceptionThrown" || m.Method == "Log.entryAdded" && !strings.Contains(string(m.Params), "status of 401") {
				b.t.Errorf("%s: %.1000s", m.Method, m.Params)
			}
			continue
		}
		b.mu.Lock()
		to := b.waiting[m.ID]
		delete(b.waiting, m.ID)
		b.mu.Unlock()
		if to != nil {
			to <- m.answer
		}
	}
}

// call has the browser do something; result is what it replies, if it is not nil.
func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	done := make(chan answer, 1)
	b.mu.Lock()
	b.last++
	message := map[string]any{"id": b.last, "method": method}
	b.waiting[b.last] = done
	b.mu.Unlock()
	if params != nil {
		message["params"] = params
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	select {
	case a := <-done:
		if a.Error != nil {
			b.t.Fatalf("%s: %s", method, a.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(a.Result, result); err != nil {
				b.t.Fatalf("%s: %v", method, err)
			}
		}
	case <-time.After(patience):
		b.t.Fatalf("%s: no answer", method)
	}
}

// eval is the value of an expression in the page, or of what it promises.
func (b *browser) eval(expression string, value any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%.200s: %s", expression, r.ExceptionDetails.Exception.Description)
	}
	if value != nil {
		if err := json.Unmarshal(r.Result.Value, value); err != nil {
			b.t.Fatalf("%.200s: %s: %v", expression, r.Result.Value, err)
		}
	}
}

// until waits for an expression to be true.
func (b *browser) until(expression string) bool {
	b.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var is bool
		b.eval("!!("+expression+")", &is)
		if is || time.Now().After(end) {
			return is
		}
	}
}

// show opens an address, as one does who comes from elsewhere, and waits until it is there.
func (b *browser) show(url string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": "about:blank"}, nil)
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	if !b.until("location.href !== 'about:blank' && document.readyState === 'complete'") {
		b.t.Errorf("%s does not open", url)
	}
}

// read waits until the page says something.
func (b *browser) says(what string) {
	b.t.Helper()
	words, _ := json.Marshal(what)
	if !b.until(fmt.Sprintf("document.body.innerText.replace(/\\s+/g, ' ').includes(%s)", words)) {
		var text string
		b.eval("location.href + ' ' + document.body.innerText.replace(/\\s+/g, ' ')", &text)
		b.t.Errorf("there is no %q in %.1500s", what, text)
	}
}

// click clicks the button with a label.
func (b *browser) click(label string) {
	b.t.Helper()
	words, _ := json.Marshal(label)
	if !b.until(fmt.Sprintf("[...document.querySelectorAll('button')].some(b => b.textContent === %s)", words)) {
		b.t.Fatalf("there is no button %s", words)
	}
	b.eval(fmt.Sprintf("[...document.querySelectorAll('button')].find(b => b.textContent === %s).click()", words), nil)
}

// press presses a key.
func (b *browser) press(key string, code int) {
	for _, kind := range []string{"rawKeyDown", "keyUp"} {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}, nil)
	}
}

// signIn has the requests from now on be of a user.
func (b *browser) signIn(user, password string) {
	b.call("Network.setExtraHTTPHeaders", map[string]any{"headers": map[string]string{
		"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)),
	}}, nil)
}

// display is a screen: its width in pixels, and whether its reader wants it dark.
func (b *browser) display(width int, dark bool) {
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 740, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}
