//go:build !linux

package info

// The system's name and the process's processor time on systems other than Linux, as far as Go knows them.

import (
	"runtime"
	"runtime/metrics"
)

const multiplexing = "goroutines"

func systemName() string { return runtime.GOOS + " " + runtime.GOARCH }

// processorSeconds is the time spent in the program.
func processorSeconds() (system, user float64) {
	s := []metrics.Sample{{Name: "/cpu/classes/user:cpu-seconds"}, {Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(s)
	return 0, s[0].Value.Float64() + s[1].Value.Float64()
}
