package server

// The times that commands took, as INFO latencystats and LATENCY HISTOGRAM
// tell them, and the processor's time.

import (
	"github.com/limitkv/limitkv/commands/command"
)

func (f *family) infoCPU(w *command.InfoWriter) {
	system, user := processorSeconds()
	w.Section("CPU")
	w.Linef("used_cpu_sys", "%f", system)
	w.Linef("used_cpu_user", "%f", user)
	w.Line("used_cpu_sys_children", "0.000000")
	w.Line("used_cpu_user_children", "0.000000")
}

func (f *family) infoLatencyStats(w *command.InfoWriter) {
	w.Section("Latencystats")
}
