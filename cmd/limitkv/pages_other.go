//go:build !linux

package main

// Other systems are not told what of the program is no longer needed.

func dropStart() {}
