package main

// The same programs against a limitkv that proves meanwhile that its effects make the same keys. The programs start what
// LIMITKV names and kill it when they are done, so this command stands in for the binary, in two processes: one is started
// and killed; the other one, which the first starts, runs the server, looks at it, and once the first is gone has it prove
// for the last time and ends it.

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// The environment of a program whose servers are to prove: provenBinary names limitkv's binary, proofFolder where each
// server's proof goes, and proverOf, for the second process, the first one's id.
const (
	provenBinary = "CLIENTS_PROVEN"
	proofFolder  = "CLIENTS_PROOFS"
	proverOf     = "CLIENTS_PROVER"
)

// A proof's file has one of these names' ends: while the server runs, and afterwards.
const (
	proofBegun = ".begun"
	proofEnded = ".ended"
)

// proofsPatience is how long the last proofs may take.
const proofsPatience = 2 * time.Minute

// becomeProven runs the second process and ends with it.
func becomeProven(args []string) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	for i := range args {
		if args[i] == "--port" && i+1 < len(args) && args[i+1] == "0" {
			args[i+1] = port
		}
	}
	prover := exec.Command(os.Args[0], append(args, "--test")...)
	prover.Env = append(os.Environ(), proverOf+"="+strconv.Itoa(os.Getpid()))
	prover.Stdout, prover.Stderr = os.Stdout, os.Stderr
	_ = peer.Group(prover) // who is killed with all that it started leaves it
	alive, err := prover.StdinPipe()
	if err != nil {
		return err
	}
	defer alive.Close()
	return prover.Run()
}

// runProven is the second process: it ends with its standard input.
func runProven(args []string) error {
	file := filepath.Join(os.Getenv(proofFolder), os.Getenv(proverOf))
	if err := os.WriteFile(file+proofBegun, nil, 0o644); err != nil {
		return err
	}
	said := prove(args)
	if err := os.WriteFile(file+proofBegun, []byte(said+"\n"), 0o644); err != nil {
		return err
	}
	return os.Rename(file+proofBegun, file+proofEnded)
}

// prove runs a server until the standard input ends, and tells what it proved.
func prove(args []string) (said string) {
	value := func(name string) string {
		if i := slices.Index(args, name); i >= 0 && i+1 < len(args) {
			return args[i+1]
		}
		return ""
	}
	server := exec.Command(os.Getenv(provenBinary), args...)
	server.Stdout, server.Stderr = os.Stdout, os.Stderr
	if err := server.Start(); err != nil {
		return fmt.Sprintf("FAIL %v", err)
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	var p *peer.Prover
	err := peer.ErrEnded
	for end := time.Now().Add(startPatience); errors.Is(err, peer.ErrEnded) && time.Now().Before(end); time.Sleep(time.Millisecond) {
		p, err = peer.Prove("127.0.0.1:"+value("--port"), value("--requirepass"))
	}
	if err != nil {
		return fmt.Sprintf("FAIL %v", err)
	}
	stop := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(stop)
	}()
	err = p.Run(stop)
	<-stop
	said = fmt.Sprintf("%d effects, compared %d times", p.Effects, p.Checks)
	if err != nil {
		said = fmt.Sprintf("FAIL %v: %s: %v", args, said, err)
	}
	return said
}

// proofs waits for the servers of a folder to be proven, and prints what they say.
func proofs(dir string) (ok bool, err error) {
	for end := time.Now().Add(proofsPatience); ; time.Sleep(50 * time.Millisecond) {
		begun, err := filepath.Glob(filepath.Join(dir, "*"+proofBegun))
		if err != nil {
			return false, err
		}
		if len(begun) == 0 {
			break
		}
		if time.Now().After(end) {
			return false, fmt.Errorf("%d servers have not ended", len(begun))
		}
	}
	ended, err := filepath.Glob(filepath.Join(dir, "*"+proofEnded))
	if err != nil {
		return false, err
	}
	ok = len(ended) > 0
	for _, path := range ended {
		b, err := os.ReadFile(path)
		if err != nil {
			return false, err
		}
		fmt.Printf("server: %s", b)
		ok = ok && !strings.HasPrefix(string(b), "FAIL")
	}
	return ok, nil
}
