package scripting

// HoldCompilers keeps long sources from being compiled until release is called.
func HoldCompilers() (release func()) {
	for range cap(compilers) {
		compilers <- struct{}{}
	}
	return func() {
		for range cap(compilers) {
			<-compilers
		}
	}
}

// SetClock makes os.clock another function in interpreters that are made before undo is called.
func SetClock(fn func() float64) (undo func()) {
	former := vmConfig.CPUSeconds
	vmConfig.CPUSeconds = fn
	return func() { vmConfig.CPUSeconds = former }
}
