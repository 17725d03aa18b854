//go:build !race

package main

// raceBuild tells whether the tests, and so their servers, use the race detector, which never returns memory.
const raceBuild = false
