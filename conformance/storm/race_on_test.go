//go:build race

package storm

// raceDetector: the tests are built with it, and so is the server.
const raceDetector = true
