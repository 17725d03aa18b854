package main

// Where what was fetched is kept.

import (
	"os"
	"os/exec"
	"path/filepath"
)

// cached makes and returns the folder of the user's cache that something is kept in. A file done in it says that it is
// whole.
func cached(language, name string) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "limitkv-suites", language, name)
	return dir, os.MkdirAll(dir, 0o755)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// loudly runs a program with its output on the standard error.
func loudly(args ...string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}
