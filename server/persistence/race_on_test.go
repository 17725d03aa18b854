//go:build race

package persistence

// raceBuild tells whether the tests use the race detector, with which a sync.Pool drops some objects.
const raceBuild = true
