package main

// Examples: a folder has an executable run, which gets a server's address in LIMITKV_URL, and in LIMITKV the binary, and
// prints what the text block of its README shows.

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

var examples = []program{
	{folder: "examples/order-timeout", needs: []string{"python3"}, run: runExample},
	{folder: "examples/webhooks", needs: []string{"go"}, run: runExample},
	{folder: "examples/cron-fleet", needs: []string{"python3"}, run: runExample},
	{folder: "examples/api-plans", needs: []string{"node", "npm"}, run: runExample},
	{folder: "examples/tests", needs: []string{"go", "python3", "node", "npm", "java", "mvn"}, system: []string{"ruby"}, run: runExample},
}

// runExample runs an example on a server of its own.
func runExample(p program, server string) error {
	readme, err := os.ReadFile(filepath.Join(p.folder, "README.md"))
	if err != nil {
		return err
	}
	_, rest, found := strings.Cut(string(readme), "\n```text\n")
	want, _, ends := strings.Cut(rest, "\n```\n")
	if !found || !ends {
		return fmt.Errorf("its README has no text block")
	}
	cmd := exec.Command(server, "--port", "0", "--save", "")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	at, listens := "", false
	for lines := bufio.NewScanner(pipe); !listens; {
		if !lines.Scan() {
			return fmt.Errorf("the server ended: %v", lines.Err())
		}
		_, at, listens = strings.Cut(lines.Text(), "listens on ")
	}
	address, _, _ := strings.Cut(strings.TrimSpace(at), " ")
	got, err := p.output("run", "LIMITKV="+server, "LIMITKV_URL=redis://"+address)
	if err != nil {
		return fmt.Errorf("%v, after\n%s", err, got)
	}
	if got := strings.TrimSpace(got); got != want {
		return fmt.Errorf("it prints\n%s\nnot\n%s", got, want)
	}
	return nil
}
