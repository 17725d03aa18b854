//go:build unix

package peer

import (
	"os/exec"
	"syscall"
)

// Signals by which a process stands still and goes on.
const (
	SIGSTOP = syscall.SIGSTOP
	SIGCONT = syscall.SIGCONT
)

// Group has a command that is about to start end with all that it starts: by kill, which does nothing where it never started.
func Group(cmd *exec.Cmd) (kill func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return func() {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
		}
	}
}
