//go:build !linux

package main

// Without /proc nothing is known of the server's process.

func listener(string) int      { return 0 }
func processorNanos(int) int64 { return 0 }
func residentBytes(int) int64  { return 0 }
func ownNanos() int64          { return 0 }
