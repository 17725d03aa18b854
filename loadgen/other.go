//go:build !linux

package main

// Loading and measuring need epoll and /proc. On other systems the program can only compare the counts of Go benchmarks.

import "errors"

var errLinux = errors.New("this needs Linux")

func drive(*load, string, string, int, int, func()) ([]*tally, error) { return nil, errLinux }
func runLeast([]string) error                                         { return errLinux }

func listener(string) int      { return 0 }
func processorNanos(int) int64 { return 0 }
func residentBytes(int) int64  { return 0 }
func ownNanos() int64          { return 0 }
