package main

// Integrations: a folder has an executable test, which gets the server's binary in LIMITKV and prints a line for each
// check, its parts separated by tabs:
//
//	pass framework version check
//	fail framework version check reason

import (
	"fmt"
	"strings"
)

var integrations = []program{
	{folder: "packages/integrations/python-limits", needs: []string{"python3"}, run: runChecks},
	{folder: "packages/integrations/node", needs: []string{"node", "npm"}, run: runChecks},
	{folder: "packages/integrations/nethttp", needs: []string{"go"}, run: runChecks},
	{folder: "packages/integrations/java", needs: []string{"java", "mvn"}, run: runChecks},
	{folder: "packages/integrations/openresty", needs: []string{"python3"}, system: []string{"nginx"}, run: runChecks},
}

// runChecks runs an integration's checks.
func runChecks(p program, server string) error {
	out, err := p.output("test", "LIMITKV="+server)
	passed, failed := 0, 0
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		part := strings.Split(line, "\t")
		switch {
		case part[0] == "pass" && len(part) == 4:
			passed++
		case part[0] == "fail" && len(part) == 5:
			failed++
			fmt.Printf("FAIL %s %s: %s: %s\n", part[1], part[2], part[3], part[4])
		default:
			failed++
			fmt.Printf("FAIL %s: %s\n", p.folder, line)
		}
	}
	fmt.Printf("%s: %d passed, %d failed\n", p.folder, passed, failed)
	switch {
	case err != nil:
		return err
	case failed > 0:
		return fmt.Errorf("%d checks failed", failed)
	case passed == 0:
		return fmt.Errorf("no check was run")
	}
	return nil
}
