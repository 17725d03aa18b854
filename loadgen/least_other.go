//go:build !linux

package main

// The program that answers always the same is for Linux alone: on others it would show something else than what its servers do.

import "errors"

func runLeast([]string) error { return errors.New("single needs Linux") }
