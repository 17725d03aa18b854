package main

// The same programs against a real Redis: a check that fails there as well says nothing of limitkv. The programs start
// what LIMITKV names and read its port from its first line, so this command stands in for limitkv's binary: it gives
// Redis a free port, says as limitkv does where that listens, and becomes it.

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// redisBinary names, in a program's environment, the redis-server that stands behind LIMITKV.
const redisBinary = "CLIENTS_REDIS"

// startPatience is the longest that a Redis may take to listen.
const startPatience = 10 * time.Second

// notRedis says whether a check asks for what a Redis does not have: limitkv's own commands, or TLS in a build without it.
func notRedis(c check, tls bool) bool {
	return strings.Contains(c.name, "RL.") || strings.Contains(c.name, "DQ.") || (c.area == "tls" || strings.Contains(c.name, "TLS")) && !tls
}

// hasTLS says whether a redis-server was built with TLS.
func hasTLS(binary string) bool {
	out, err := exec.Command("ldd", binary).Output()
	return err == nil && strings.Contains(string(out), "libssl")
}

// becomeRedis does not return unless it fails.
func becomeRedis(binary string, args []string) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	redis := []string{binary, "--save", "", "--bind", "127.0.0.1", "--loglevel", "warning"}
	cluster, tls := false, hasTLS(binary)
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--port" && i+1 < len(args) && args[i+1] == "0":
			redis = append(redis, "--port", port)
			i++
			continue
		case strings.HasPrefix(args[i], "--tls-") && !tls:
			i++
			continue
		case args[i] == "--cluster-enabled":
			cluster = true
			redis = append(redis, "--cluster-config-file", "nodes-"+port+".conf", "--cluster-announce-ip", "127.0.0.1")
		}
		redis = append(redis, args[i])
	}
	if err := os.Chdir(os.TempDir()); err != nil {
		return err
	}
	herald := exec.Command(os.Args[0], "127.0.0.1:"+port, fmt.Sprint(cluster))
	herald.Env = append(os.Environ(), redisBinary+"=:herald")
	herald.Stdout = os.Stdout
	if err := herald.Start(); err != nil {
		return err
	}
	return syscall.Exec(binary, redis, os.Environ())
}

// heraldRedis says that the Redis at addr listens, once it does; one of a cluster gets all slots before.
func heraldRedis(addr string, cluster bool) error {
	for end := time.Now().Add(startPatience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			continue
		}
		defer c.Close()
		for said := []byte("not yet"); cluster && !bytes.Contains(said, []byte("cluster_state:ok")); {
			fmt.Fprintf(c, "CLUSTER ADDSLOTSRANGE 0 16383\r\nCLUSTER INFO\r\n")
			time.Sleep(100 * time.Millisecond)
			b := make([]byte, 1<<16)
			n, err := c.Read(b)
			if err != nil || time.Now().After(end) {
				return fmt.Errorf("the cluster is not well: %v %q", err, said)
			}
			said = b[:n]
		}
		fmt.Printf("redis listens on %s (the real one)\n", addr)
		return nil
	}
	return fmt.Errorf("no redis at %s", addr)
}

// freePort looks for a port from where the process's number points, so that two that start at once find two, and where that
// of the cluster bus, 10000 above, is below those that the system gives out.
func freePort() (string, error) {
	for n := range 100 {
		port := strconv.Itoa(12000 + (os.Getpid()*100+n)%10000)
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err == nil {
			return port, l.Close()
		}
	}
	return "", errors.New("no free port")
}
