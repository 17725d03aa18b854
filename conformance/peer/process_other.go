//go:build !unix

package peer

import (
	"os/exec"
	"syscall"
)

// No process stands still here: to send these is an error.
const (
	SIGSTOP = syscall.Signal(-1)
	SIGCONT = syscall.Signal(-2)
)

// Group knows no groups here: kill ends the command alone.
func Group(cmd *exec.Cmd) (kill func()) {
	return func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
		}
	}
}
