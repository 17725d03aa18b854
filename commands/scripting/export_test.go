package scripting

// SetClock has os.clock be another function in interpreters that are made before undo is called.
func SetClock(fn func() float64) (undo func()) {
	former := vmConfig.CPUSeconds
	vmConfig.CPUSeconds = fn
	return func() { vmConfig.CPUSeconds = former }
}
