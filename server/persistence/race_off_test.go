//go:build !race

package persistence

// raceBuild: whether the tests have the race detector, which drops part of what a sync.Pool is given.
const raceBuild = false
