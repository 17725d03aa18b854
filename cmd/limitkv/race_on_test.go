//go:build race

package main

// raceBuild: whether the tests, and so their servers, have the race detector, which keeps as much memory as there ever was.
const raceBuild = true
