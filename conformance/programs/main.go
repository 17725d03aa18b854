// Command programs runs the checks of each folder of packages/integrations/, and each of examples/, which prints what its README says.
// They have the built server, and the real frameworks and libraries, fetched at the versions that their lock files name.
//
// Two run at a time. What needs a program that the machine lacks is skipped with a message. In CI that is a failure, unless
// the program comes from the system's packages, which a machine may be unable to fetch.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// program is a folder with an executable, and what it needs on the machine.
type program struct {
	folder string
	needs  []string
	// system are programs that the system's packages bring.
	system []string
	run    func(p program, server string) error
}

// patience is how long a program may take, with what it fetches the first time.
const patience = 10 * time.Minute

func main() {
	server := flag.String("server", "bin/limitkv", "the server's binary")
	only := flag.String("only", "", "folders to run, separated by commas; by default all")
	flag.Parse()
	binary, err := filepath.Abs(*server)
	if err == nil {
		_, err = os.Stat(binary)
	}
	if err == nil {
		err = runAll(slices.Concat(integrations, examples), *only, binary)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance/programs:", err)
		os.Exit(1)
	}
}

// runAll runs the programs, two at a time, and says which failed.
func runAll(programs []program, only, server string) error {
	var mu sync.Mutex
	var failed []string
	var all sync.WaitGroup
	free := make(chan struct{}, 2)
	ran := 0
	for _, p := range programs {
		if only != "" && !slices.Contains(strings.Split(only, ","), filepath.Base(p.folder)) {
			continue
		}
		ran++
		if lacks, must := p.lacks(); lacks != "" {
			fmt.Printf("%s: skipped, there is no %s\n", p.folder, lacks)
			if must {
				failed = append(failed, p.folder)
			}
			continue
		}
		all.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			began := time.Now()
			err := p.run(p, server)
			mu.Lock()
			defer mu.Unlock()
			fmt.Printf("%s: %.0f s\n", p.folder, time.Since(began).Seconds())
			if err != nil {
				fmt.Printf("FAIL %s: %v\n", p.folder, err)
				failed = append(failed, p.folder)
			}
		})
	}
	all.Wait()
	switch {
	case ran == 0:
		return fmt.Errorf("there is no such folder")
	case len(failed) > 0:
		return fmt.Errorf("failed: %s", strings.Join(failed, " "))
	}
	return nil
}

// lacks names what the machine lacks, and says whether CI must have it.
func (p program) lacks() (name string, must bool) {
	for i, name := range append(slices.Clone(p.needs), p.system...) {
		if _, err := exec.LookPath(name); err != nil {
			return name, i < len(p.needs) && os.Getenv("CI") != ""
		}
	}
	return "", false
}

// output runs the folder's executable to its end, and ends what it has left running.
func (p program) output(executable string, env ...string) (string, error) {
	cmd := exec.Command("./" + executable)
	cmd.Dir = p.folder
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	end := peer.Group(cmd)
	late := time.AfterFunc(patience, end)
	defer late.Stop()
	out, err := cmd.Output()
	end()
	return string(out), err
}
