package config

// Parameters of redis.conf that the server stores as given. Clients, tools and tests read or set them. Most have no effect,
// and at its start the server warns about those that are given. A parameter that would promise something missing accepts only
// its default. Parameters that have an effect after all say which.

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/limitkv/limitkv/server/params"
)

const maxInt = math.MaxInt32

// plain is a parameter that is stored as given, and mostly has no effect.
type plain struct {
	names string // name and alias
	// value is the default. words, if set, are the allowed values. Otherwise the value is a number from lo to hi, of bytes if
	// memory is set.
	value  string
	words  string
	lo, hi int64
	kind   kind
	// only, if set, is the reason why any value but the default is refused.
	only string
	// unseen parameters are for tests.
	unseen bool
	// fixed parameters cannot be set while the server runs.
	fixed bool
	// ofWords is Param.Words.
	ofWords bool
	// secret parameters are not logged.
	secret bool
	// from and to, if set, are the bounds to which a number is clamped.
	from, to int64
	// help is the parameter's effect. A parameter without help has no effect.
	help string
	// form, if set, checks a text and returns it as CONFIG GET shows it.
	form func(value string) (string, error)
}

type kind uint8

const (
	kindWords kind = iota
	kindNumber
	kindMemory
	kindText
)

func yes(names string) plain { return plain{names: names, value: "yes", words: "yes no"} }
func no(names string) plain  { return plain{names: names, value: "no", words: "yes no"} }
func one(names, value, of string) plain {
	return plain{names: names, value: value, words: of}
}
func num(names string, value, lo, hi int64) plain {
	return plain{names: names, value: strconv.FormatInt(value, 10), kind: kindNumber, lo: lo, hi: hi}
}
func mem(names string, value, lo, hi int64) plain {
	return plain{names: names, value: strconv.FormatInt(value, 10), kind: kindMemory, lo: lo, hi: hi}
}
func txt(names, value string) plain { return plain{names: names, value: value, kind: kindText} }

func (p plain) hidden() plain         { p.secret = true; return p }
func (p plain) forTests() plain       { p.unseen = true; return p }
func (p plain) fix() plain            { p.fixed = true; return p }
func (p plain) several() plain        { p.ofWords = true; return p }
func (p plain) just(why string) plain { p.only = why; return p }

func (p plain) within(from, to int64) plain                { p.from, p.to = from, to; return p }
func (p plain) does(help string) plain                     { p.help = help; return p }
func (p plain) as(form func(string) (string, error)) plain { p.form = form; return p }

const (
	noDaemon = "limitkv stays in the foreground; let systemd or a shell's & run it"
)

var plainParams = []plain{
	// Memory and its eviction.
	num("active-expire-effort", 1, 1, 10),
	no("lazyfree-lazy-user-del"), no("lazyfree-lazy-user-flush"),
	yes("activerehashing"), yes("jemalloc-bg-thread"),
	no("activedefrag"),
	mem("active-defrag-ignore-bytes", 100<<20, 1, math.MaxInt64),
	num("active-defrag-threshold-lower", 10, 0, 1000), num("active-defrag-threshold-upper", 100, 0, 1000),
	num("active-defrag-cycle-min", 1, 1, 99), num("active-defrag-cycle-max", 25, 1, 99),
	num("active-defrag-max-scan-fields", 1000, 1, math.MaxInt64),
	yes("disable-thp").fix(), one("oom-score-adj", "no", "no yes relative absolute"), txt("oom-score-adj-values", "0 200 800").as(scoresForm).several(),

	num("list-compress-depth", 0, 0, maxInt),

	// Persistence.
	no("rdb-del-sync-files"), yes("rdb-save-incremental-fsync"), yes("aof-rewrite-incremental-fsync"),
	one("sanitize-dump-payload", "no", "no yes clients").does("whether a value that contradicts itself is refused instead of being put right"),

	// Replication.
	txt("masteruser", "").hidden().does("the user as whom a replica logs in to its primary"),
	txt("masterauth", "").hidden().does("the password with which a replica logs in to its primary"),
	yes("replica-serve-stale-data slave-serve-stale-data").does("whether a replica serves what it has while its primary is away"),
	yes("replica-read-only slave-read-only").does("whether a replica refuses writes"),
	no("replica-lazy-flush slave-lazy-flush").does("whether keys that make room for a full synchronisation are counted in lazyfreed_objects"),
	yes("replica-ignore-maxmemory slave-ignore-maxmemory").does("whether a replica leaves it to its primary to evict"),
	no("repl-rdb-channel").forTests(), // limitkv does not use this channel, like older versions of Redis
	one("repl-diskless-load", "disabled", "disabled on-empty-db swapdb").does("whether a replica loads what its primary sends as it comes, and where, or keeps it on disk first"),
	mem("replica-full-sync-buffer-limit", 0, 0, math.MaxInt64),
	num("replica-priority slave-priority", 100, 0, maxInt).does("the lowest is what Sentinel promotes first, 0 = never"),
	txt("replica-announce-ip slave-announce-ip", "").does("the address at which a replica tells its primary that it is reached"),
	num("replica-announce-port slave-announce-port", 0, 0, 65535).does("the port at which a replica tells its primary that it is reached, 0 = the one that it listens at"),
	yes("replica-announced").does("whether Sentinel tells clients of a replica"), no("replica-ignore-disk-write-errors"),
	one("propagation-error-behavior", "ignore", "ignore panic panic-on-replicas"),

	// The cluster, which has no other nodes.
	txt("cluster-config-file", "nodes.conf").fix(), num("cluster-node-timeout", 15000, 0, math.MaxInt64),
	num("cluster-replica-validity-factor cluster-slave-validity-factor", 10, 0, maxInt), num("cluster-migration-barrier", 1, 0, maxInt),
	yes("cluster-allow-replica-migration"), yes("cluster-require-full-coverage"),
	no("cluster-replica-no-failover cluster-slave-no-failover"), no("cluster-allow-reads-when-down"),
	yes("cluster-allow-pubsubshard-when-down"), mem("cluster-link-sendbuf-limit", 0, 0, math.MaxInt64),
	txt("cluster-announce-ip", "").does("the address of the node that CLUSTER tells, the one that the client came to if empty"),
	txt("cluster-announce-hostname", "").as(hostnameForm).does("the name of the node's machine that CLUSTER tells"), txt("cluster-announce-human-nodename", "").as(nodeNameForm),
	num("cluster-announce-port", 0, 0, 65535).does("the port that CLUSTER tells, 0 = port"),
	num("cluster-announce-tls-port", 0, 0, 65535).does("the port for TLS that CLUSTER tells, 0 = tls-port"),
	num("cluster-announce-bus-port", 0, 0, 65535).does("the port of the bus that CLUSTER tells, 0 = cluster-port; there is no bus"),
	num("cluster-port", 0, 0, 65535).fix().does("the port of the bus that CLUSTER tells, 0 = port + 10000; there is no bus"),
	one("cluster-preferred-endpoint-type", "ip", "ip hostname unknown-endpoint").does("how CLUSTER SLOTS names the node: by address, by name or not at all"),
	num("cluster-compatibility-sample-ratio", 0, 0, 100),

	// TLS parameters that are not the listener's.
	txt("tls-client-cert-file", "").does("the certificate with which a replica comes to its primary, PEM; tls-cert-file if empty"),
	txt("tls-client-key-file", "").does("that certificate's private key, PEM"),
	txt("tls-client-key-file-pass", "").hidden().does("pass phrase of that private key"), txt("tls-dh-params-file", ""),
	no("tls-replication").does("whether a replica comes to its primary by TLS"), no("tls-cluster"), txt("tls-ciphersuites", ""),
	no("tls-prefer-server-ciphers"), yes("tls-session-caching"), num("tls-session-cache-size", 20480, 0, maxInt),
	num("tls-session-cache-timeout", 300, 0, maxInt),

	// The process.
	no("daemonize").fix().just(noDaemon),
	one("supervised", "no", "upstart systemd auto no").fix().does("systemd, or auto, tells systemd when the server is ready (Type=notify)"),
	txt("pidfile", "").fix().does("path of a file that holds the process id while the server runs"),
	no("always-show-logo").fix().does("the start logs a line with the port and the process id"), yes("set-proc-title").fix(), txt("proc-title-template", "{title} {listen-addr} {server-mode}").as(titleForm),
	txt("locale-collate", "").as(localeForm),
	num("io-threads", 1, 1, 128).fix(), num("hz", 10, 0, maxInt).within(1, 500), yes("dynamic-hz"), num("tcp-backlog", 511, 0, maxInt).fix(),
	txt("bind-source-addr", "").does("the address from which a replica comes to its primary"), num("socket-mark-id", 0, 0, math.MaxUint32).fix(),
	num("max-new-connections-per-cycle", 10, 1, 1000), num("max-new-tls-connections-per-cycle", 1, 1, 1000),
	no("syslog-enabled").fix().just("limitkv logs to a file or to standard output"),
	txt("syslog-ident", "redis").fix(), one("syslog-facility", "local0", "user local0 local1 local2 local3 local4 local5 local6 local7").fix(),
	yes("crash-log-enabled").does("a signal that tells of a fault leaves a report in the log"), yes("crash-memcheck-enabled"), no("hide-user-data-from-log"), txt("ignore-warnings", ""),
	txt("server-cpulist server_cpulist", "").fix(), txt("bio-cpulist bio_cpulist", "").fix(),
	txt("aof-rewrite-cpulist aof_rewrite_cpulist", "").fix(), txt("bgsave-cpulist bgsave_cpulist", "").fix(),
	txt("shutdown-on-sigint", "default").as(shutdownForm).several().does("how SIGINT ends the server, as the options of SHUTDOWN"),
	txt("shutdown-on-sigterm", "default").as(shutdownForm).several().does("how SIGTERM ends the server, as the options of SHUTDOWN"),

	// For tests of redis-server itself. limitkv serves clients all the time while it loads.
	num("loading-process-events-interval-bytes", 512<<10, 1024, maxInt).forTests(),
	no("use-exit-on-panic").forTests(), num("watchdog-period", 0, 0, maxInt).forTests(),

	// Users and protection.
	one("enable-protected-configs", "no", "no yes local").fix().does("whose CONFIG SET may set parameters that name files: nobody's, everybody's, that of clients of this machine"), one("enable-module-command", "no", "no yes local").fix(),
}

// declarePlain declares the parameters that nobody else has declared.
func declarePlain(c *params.Config) {
	for i := range plainParams {
		p := &plainParams[i]
		name, alias, _ := strings.Cut(p.names, " ")
		if c.Find(name) != nil || alias != "" && c.Find(alias) != nil {
			continue
		}
		value := new(atomic.Pointer[string])
		value.Store(&p.value)
		c.Add(&params.Param{
			Name: name, Alias: alias, Immutable: p.fixed, Inert: p.only == "" && p.help == "", Help: p.help, Secret: p.secret, Hidden: p.unseen, Words: p.ofWords,
			Get: func() string { return *value.Load() },
			Set: func(s string) error {
				s, err := p.check(s)
				if err == nil {
					value.Store(&s)
				}
				return err
			},
		})
	}
}

// shutdownForm checks how a signal ends the server, and puts the options in Redis's order.
func shutdownForm(value string) (string, error) {
	of := []string{"default", "save", "nosave", "now", "force"}
	words := strings.Fields(strings.ToLower(value))
	var shown []string
	for _, w := range words {
		if !slices.Contains(of, w) {
			return "", params.ErrNotAmong(of)
		}
	}
	for _, w := range of[1:] {
		if slices.Contains(words, w) {
			shown = append(shown, w)
		}
	}
	switch {
	case len(words) == 0:
		return "", params.ErrNotAmong(of)
	case shown == nil:
		return of[0], nil
	case slices.Contains(shown, "save") && slices.Contains(shown, "nosave"):
		return "", errors.New("shutdown options SAVE and NOSAVE can't be used simultaneously")
	}
	return strings.Join(shown, " "), nil
}

func scoresForm(value string) (string, error) {
	const scoreMax, count = 2000, 3
	words := strings.Fields(value)
	if len(words) != count {
		return "", errors.New("wrong number of arguments")
	}
	for _, w := range words {
		if n, err := strconv.ParseInt(w, 10, 64); err != nil || n < -scoreMax || n > scoreMax {
			return "", errors.New("Invalid oom-score-adj-values, elements must be between -2000 and 2000.")
		}
	}
	return strings.Join(words, " "), nil
}

// localeForm accepts the C locale only: SORT ALPHA compares bytes.
func localeForm(value string) (string, error) {
	if value == "" || value == "C" || value == "POSIX" {
		return value, nil
	}
	return "", errors.New("Invalid locale name")
}

func hostnameForm(value string) (string, error) {
	const lengthMax = 255
	if len(value) > lengthMax {
		return "", errors.New("Hostnames must be less than 256 characters")
	}
	for _, c := range []byte(value) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.') {
			return "", errors.New("Hostnames may only contain alphanumeric characters, hyphens or dots")
		}
	}
	return value, nil
}

func nodeNameForm(value string) (string, error) {
	if strings.ContainsAny(value, "!#$%&()*+:;<>?@[]^{|}~") {
		return "", errors.New("Announced human node name contained invalid character")
	}
	return value, nil
}

// titleVariable finds the variables of a process title.
var titleVariable = regexp.MustCompile(`\{[^}]*\}?`)

func titleForm(value string) (string, error) {
	known := true
	title := titleVariable.ReplaceAllStringFunc(value, func(v string) string {
		switch v {
		case "{title}", "{server-mode}":
			return ""
		case "{listen-addr}", "{port}", "{tls-port}", "{unixsocket}", "{config-file}":
			return v
		}
		known = false
		return ""
	})
	if !known || title == "" {
		return "", errors.New("template format is invalid or contains unknown variables")
	}
	return value, nil
}

// check is the value in the form in which CONFIG GET shows it.
func (p *plain) check(s string) (string, error) {
	switch p.kind {
	case kindWords:
		of := strings.Fields(p.words)
		s = strings.ToLower(s)
		found := false
		for _, w := range of {
			found = found || w == s
		}
		if !found && p.words == "yes no" {
			return "", params.ErrNotYesNo
		}
		if !found {
			return "", params.ErrNotAmong(of)
		}
	case kindNumber, kindMemory:
		n, err := strconv.ParseInt(s, 10, 64)
		if p.kind == kindMemory {
			n, err = params.ParseMemory(s)
		}
		switch {
		case errors.Is(err, params.ErrNotMemory):
			return "", err
		case err != nil && p.kind == kindNumber:
			return "", params.ErrNotInteger
		case err != nil || n < p.lo || n > p.hi:
			return "", params.ErrNotBetween(p.lo, p.hi)
		}
		if p.to != 0 {
			n = max(p.from, min(n, p.to))
		}
		s = strconv.FormatInt(n, 10)
	case kindText:
		if p.form != nil {
			var err error
			if s, err = p.form(s); err != nil {
				return "", err
			}
		}
	}
	if p.only != "" && s != p.value {
		return "", fmt.Errorf("%s", p.only)
	}
	return s, nil
}
