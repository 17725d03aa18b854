//go:build profile

package main

// A server built for make profile writes a profile of its processor time, from its start to SIGQUIT, to the file in
// LIMITKV_PROFILE. The released server is built without this file.

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"
)

func init() {
	path := os.Getenv("LIMITKV_PROFILE")
	if path == "" {
		return
	}
	var profile bytes.Buffer
	if err := pprof.StartCPUProfile(&profile); err != nil {
		fail(err)
	}
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGQUIT)
	go func() {
		<-ends
		pprof.StopCPUProfile()
		// The rename makes the file appear complete.
		err := os.WriteFile(path+".part", profile.Bytes(), 0o644)
		if err == nil {
			err = os.Rename(path+".part", path)
		}
		if err != nil {
			fail(fmt.Errorf("LIMITKV_PROFILE: %w", err))
		}
	}()
}
