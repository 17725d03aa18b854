// Command go runs Go's Redis clients against limitkv, which it starts as its
// users would, and prints a line for each check:
//
//	pass|fail <tab> client <tab> version <tab> area <tab> check [<tab> reason]
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

// patience is the longest a check may take.
const patience = 20 * time.Second

// manyCommands are sent in one pipeline: more, and with longer replies, than the kernel keeps for a client that writes all
// before it reads.
const manyCommands = 1_000_000

var manyValue = strings.Repeat("v", 40)

// client is a library whose checks are run.
type client struct {
	name, module string
}

func (c client) version() string {
	info, _ := debug.ReadBuildInfo()
	for _, d := range info.Deps {
		if d.Path == c.module {
			return strings.TrimPrefix(d.Version, "v")
		}
	}
	return "?"
}

// check runs a check and prints how it ended.
func (c client) check(area, name string, f func() error) {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- fmt.Errorf("panic: %v", r)
			}
		}()
		done <- f()
	}()
	var err error
	select {
	case err = <-done:
	case <-time.After(patience):
		err = fmt.Errorf("took longer than %v", patience)
	}
	if err != nil {
		fmt.Printf("fail\t%s\t%s\t%s\t%s\t%s\n", c.name, c.version(), area, name, strings.Join(strings.Fields(err.Error()), " "))
		return
	}
	fmt.Printf("pass\t%s\t%s\t%s\t%s\n", c.name, c.version(), area, name)
}

// want is an error unless got is as wanted.
func want[T comparable](what string, got, wanted T) error {
	if got != wanted {
		return fmt.Errorf("%s is %v, not %v", what, got, wanted)
	}
	return nil
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// The servers.
var (
	plain, secret  string // addresses: open, with a password and a user
	secure, mutual string // with TLS, and with TLS that asks for the client's certificate
	clustered      string // a cluster of one node
	socket         string
	password       = "a secret"
	user           = "app"
	userPassword   = "another"
)

func main() {
	if os.Getenv("LOAD") != "" {
		if err := load(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if list := os.Getenv("SENTINELS"); list != "" {
		through(strings.Split(list, ","))
	}
	dir, err := os.MkdirTemp("", "limitkv-go-")
	if err == nil {
		err = start(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		stopServers()
		os.Exit(1)
	}
	if os.Getenv("PART") != "large" {
		goRedis()
		redisRate()
		redSync()
		asynqChecks()
		rueidisChecks()
		redigoChecks()
		clusterChecks()
	}
	if os.Getenv("PART") != "usual" {
		largeChecks()
	}
	stopServers()
	os.RemoveAll(dir)
}

var servers []*exec.Cmd

func stopServers() {
	for _, s := range servers {
		s.Process.Kill()
		s.Wait()
	}
}

func start(dir string) (err error) {
	if plain, err = server("--port", "0", "--unixsocket", filepath.Join(dir, "sock"), "--notify-keyspace-events", "KEA"); err != nil {
		return err
	}
	socket = filepath.Join(dir, "sock")
	if secret, err = server("--port", "0", "--requirepass", password, "--user", user, "on", ">"+userPassword, "~*", "&*", "+@all", "-@dangerous"); err != nil {
		return err
	}
	if clustered, err = server("--port", "0", "--cluster-enabled", "yes"); err != nil {
		return err
	}
	if err := certificate(dir); err != nil {
		return err
	}
	if secure, err = tlsServer(dir, "no"); err != nil {
		return err
	}
	mutual, err = tlsServer(dir, "yes")
	return err
}

func tlsServer(dir, authClients string) (addr string, err error) {
	port := freePort()
	_, err = server("--port", "0", "--tls-port", port, "--tls-cert-file", filepath.Join(dir, "cert.pem"), "--tls-key-file",
		filepath.Join(dir, "key.pem"), "--tls-ca-cert-file", filepath.Join(dir, "cert.pem"), "--tls-auth-clients", authClients)
	return "127.0.0.1:" + port, err
}

// server starts LIMITKV and returns its address, which it prints.
func server(args ...string) (addr string, err error) {
	s := exec.Command(os.Getenv("LIMITKV"), append(args, "--save", "")...)
	out, err := s.StdoutPipe()
	if err != nil {
		return "", err
	}
	s.Stderr = os.Stderr
	if err := s.Start(); err != nil {
		return "", err
	}
	servers = append(servers, s)
	text := make([]byte, 0, 4096)
	for len(text) < cap(text) {
		n, err := out.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if _, after, ok := strings.Cut(string(text), "listens on "); ok && strings.Contains(after, "\n") {
			addr, _, _ = strings.Cut(after, " ")
			go func() { // what it prints later is nobody's concern
				for b := make([]byte, 4096); ; {
					if _, err := out.Read(b); err != nil {
						return
					}
				}
			}()
			return strings.Trim(addr, ","), nil
		}
		if err != nil {
			return "", fmt.Errorf("the server said %q: %w", text, err)
		}
	}
	return "", fmt.Errorf("the server said %q", text)
}
