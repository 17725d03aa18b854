package main

// The help text: one screen with what most people need, and all parameters on request.

import (
	"fmt"
	"os"
	"slices"

	"github.com/limitkv/limitkv/commands"
	"github.com/limitkv/limitkv/server"
)

const usage = `Usage: limitkv [FILE] [--PARAMETER VALUE] ...   start a server
       limitkv check FILE|DIRECTORY [--fix]     verify what it has written
       limitkv export --plain SOURCE FILE.rdb   for redis-server (--rdb-version)
       limitkv ping [HOST:PORT|SOCKET]          say whether a server serves

FILE has a parameter and its value on each line, in the words of redis.conf; "-"
is standard input. What is given behind it overrides it. Most used:

  --port 6379              0 picks a free port
  --bind 127.0.0.1         addresses to listen on, * is all
  --requirepass ""         the password that clients need
  --dir .                  where files are
  --appendonly no          yes logs every change
  --appendfsync everysec   always: a reply leaves when its change is on disk
  --save "3600 1 300 100 60 10000"   seconds and changes before a snapshot
  --maxmemory 0            bytes, such as 2gb; --maxmemory-policy says what then
  --replicaof ""           host and port of a server to be a replica of
  --http ""                where metrics and the page are, such as 9121
  --test                   nothing on disk; LKV.* commands move the clock
  --until-eof              end with standard input, so with whoever holds it

limitkv --help all|WORD    all parameters, or those that have to do with WORD
limitkv --version
`

// help prints the parameters for the word after --help, or the short text if there is none.
func help(args []string) {
	at := slices.IndexFunc(args, func(a string) bool { return a == "--help" || a == "-h" })
	if at+1 >= len(args) {
		fmt.Print(usage)
		return
	}
	word := args[at+1]
	if word == "all" {
		word = ""
	}
	s, err := commands.New(server.Options{LoadLater: true})
	if err != nil {
		fail(err)
	}
	text := s.Config.Usage(word)
	_ = s.Close()
	if text == "" {
		fmt.Fprintf(os.Stderr, "limitkv: no parameter has %q in its name or description\n", word)
		os.Exit(1)
	}
	fmt.Print(text)
}
