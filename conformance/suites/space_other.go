//go:build !linux

package main

// Where there are no network namespaces, suites are not run.

import (
	"errors"
	"os/exec"
)

const insideWord = "inside-of-a-network"

var errLinux = errors.New("a network for each suite is to be had on Linux alone")

func (suite) inSpace(*exec.Cmd, string, string, string, bool) error { return errLinux }

func inside() error { return errLinux }
