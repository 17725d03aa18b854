package commands_test

// The configuration files and command lines with which packages, images and charts start Redis: each starts a server with
// these settings. DIR in them is a folder of the test.

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/params"
)

// packaged is the configuration files of distributions: Redis's, with folders of the distribution.
const packaged = `
bind 127.0.0.1 -::1
protected-mode yes
port 6379
tcp-backlog 511
unixsocket DIR/redis.sock
unixsocketperm 770
timeout 0
tcp-keepalive 300
daemonize yes
supervised auto
pidfile DIR/redis-server.pid
loglevel notice
logfile DIR/redis-server.log
syslog-enabled no
syslog-ident redis
syslog-facility local0
crash-log-enabled yes
databases 16
always-show-logo no
set-proc-title yes
proc-title-template "{title} {listen-addr} {server-mode}"
locale-collate ""
save 3600 1 300 100 60 10000
stop-writes-on-bgsave-error yes
rdbcompression yes
rdbchecksum yes
sanitize-dump-payload no
dbfilename dump.rdb
rdb-del-sync-files no
dir DIR
replica-serve-stale-data yes
replica-read-only yes
repl-diskless-sync yes
repl-diskless-sync-delay 5
repl-diskless-sync-max-replicas 0
repl-diskless-load disabled
repl-disable-tcp-nodelay no
replica-priority 100
acllog-max-len 128
lazyfree-lazy-eviction no
lazyfree-lazy-expire no
lazyfree-lazy-server-del no
replica-lazy-flush no
lazyfree-lazy-user-del no
lazyfree-lazy-user-flush no
oom-score-adj no
oom-score-adj-values 0 200 800
disable-thp yes
io-threads 2
io-threads-do-reads yes
appendonly no
appendfilename "appendonly.aof"
appenddirname "appendonlydir"
appendfsync everysec
no-appendfsync-on-rewrite no
auto-aof-rewrite-percentage 100
auto-aof-rewrite-min-size 64mb
aof-load-truncated yes
aof-use-rdb-preamble yes
aof-timestamp-enabled no
slowlog-log-slower-than 10000
slowlog-max-len 128
latency-monitor-threshold 0
notify-keyspace-events ""
hash-max-listpack-entries 512
hash-max-listpack-value 64
hash-max-ziplist-entries 512
list-max-listpack-size -2
list-compress-depth 0
set-max-intset-entries 512
zset-max-listpack-entries 128
hll-sparse-max-bytes 3000
stream-node-max-bytes 4096
activerehashing yes
client-output-buffer-limit normal 0 0 0
client-output-buffer-limit replica 256mb 64mb 60
client-output-buffer-limit pubsub 32mb 8mb 60
hz 10
dynamic-hz yes
aof-rewrite-incremental-fsync yes
rdb-save-incremental-fsync yes
jemalloc-bg-thread yes
`

func TestUsualStarts(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		args  []string
		want  map[string]string
	}{
		{"Debian", map[string]string{"redis.conf": packaged + "include DIR/conf.d/*.conf\n"},
			[]string{"DIR/redis.conf", "--supervised", "systemd", "--daemonize", "no"},
			map[string]string{"daemonize": "no", "supervised": "systemd", "save": "3600 1 300 100 60 10000", "port": "6379"}},
		{"Debian, its older files", map[string]string{"redis.conf": "daemonize yes\nsave 900 1\nsave 300 10\nslave-serve-stale-data yes\nslave-read-only yes\nslave-priority 100\nslave-lazy-flush no\nlua-time-limit 5000\nlist-max-ziplist-size -2\nclient-output-buffer-limit slave 256mb 64mb 60\n"},
			[]string{"DIR/redis.conf", "--supervised", "systemd", "--daemonize", "no"},
			map[string]string{"save": "900 1 300 10", "replica-priority": "100"}},
		{"RPM", map[string]string{"redis.conf": packaged}, []string{"DIR/redis.conf", "--daemonize", "no", "--supervised", "systemd"},
			map[string]string{"daemonize": "no", "appendonly": "no"}},
		{"RPM, a local file behind", map[string]string{"redis.conf": packaged + "include DIR/local.conf\n", "local.conf": "maxmemory 1gb\nlogfile \"\"\n"},
			[]string{"DIR/redis.conf", "--daemonize", "no", "--supervised", "systemd"},
			map[string]string{"maxmemory": "1073741824", "logfile": ""}},
		{"Bitnami's image", map[string]string{"redis.conf": packaged + "bind 0.0.0.0 ::\nlogfile \"\"\nrequirepass secret\nmasterauth secret\nappendonly yes\nsave \"\"\nrename-command FLUSHDB \"\"\ninclude DIR/overrides.conf\n", "overrides.conf": "# nothing\n"},
			[]string{"DIR/redis.conf", "--daemonize", "no", "--maxmemory", "100mb"},
			map[string]string{"requirepass": "secret", "appendonly": "yes", "save": "", "maxmemory": "104857600", "logfile": "", "bind": "0.0.0.0 ::"}},
		{"Helm, a primary", map[string]string{"redis.conf": "# User-supplied common configuration:\nappendonly yes\nsave \"\"\n", "master.conf": "dir DIR\nrename-command FLUSHDB \"\"\nrename-command FLUSHALL \"\"\n"},
			[]string{"--port", "6379", "--requirepass", "secret", "--masterauth", "secret", "--include", "DIR/redis.conf", "--include", "DIR/master.conf"},
			map[string]string{"port": "6379", "requirepass": "secret", "masterauth": "secret", "appendonly": "yes", "save": ""}},
		{"Helm, without a password", map[string]string{"redis.conf": "appendonly yes\nsave \"\"\n", "master.conf": "dir DIR\n"},
			[]string{"--port", "6379", "--protected-mode", "no", "--include", "DIR/redis.conf", "--include", "DIR/master.conf"},
			map[string]string{"protected-mode": "no", "appendonly": "yes"}},
		{"Helm, a replica", map[string]string{"redis.conf": "appendonly yes\n", "replica.conf": "dir DIR\nreplica-announce-port 6379\nreplica-announce-ip redis-replicas-0.example\n"},
			[]string{"--replicaof", "redis-master-0.example", "6379", "--requirepass", "secret", "--masterauth", "secret", "--include", "DIR/redis.conf", "--include", "DIR/replica.conf"},
			map[string]string{"replicaof": "redis-master-0.example 6379", "masterauth": "secret", "replica-announce-port": "6379"}},
		{"Helm, with TLS", map[string]string{"redis.conf": "appendonly yes\n"},
			[]string{"--port", "0", "--tls-port", "6379", "--tls-cert-file", "DIR/tls.crt", "--tls-key-file", "DIR/tls.key", "--tls-ca-cert-file", "DIR/ca.crt", "--tls-auth-clients", "yes", "--tls-replication", "yes", "--include", "DIR/redis.conf"},
			map[string]string{"port": "0", "tls-port": "6379", "tls-auth-clients": "yes", "tls-replication": "yes"}},
		{"compose: durable", nil, []string{"--appendonly", "yes"}, map[string]string{"appendonly": "yes"}},
		{"compose: saved", nil, []string{"--save", "20", "1", "--loglevel", "warning", "--requirepass", "secret"},
			map[string]string{"save": "20 1", "loglevel": "warning", "requirepass": "secret"}},
		{"compose: a cache", nil, []string{"--maxmemory", "256mb", "--maxmemory-policy", "allkeys-lru", "--save", "", "--appendonly", "no"},
			map[string]string{"maxmemory": "268435456", "maxmemory-policy": "allkeys-lru", "save": "", "appendonly": "no"}},
		{"compose: one string", nil, []string{"--save 60 1", "--maxmemory-policy noeviction"},
			map[string]string{"save": "60 1", "maxmemory-policy": "noeviction"}},
		{"compose: a mounted file", map[string]string{"redis.conf": "bind 0.0.0.0\nprotected-mode no\nmaxmemory 2gb\nmaxmemory-policy volatile-lru\nnotify-keyspace-events Ex\n"},
			[]string{"DIR/redis.conf"}, map[string]string{"maxmemory": "2147483648", "notify-keyspace-events": "xE"}},
		{"compose: a cluster's node", nil, []string{"--port", "7000", "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "5000", "--appendonly", "yes"},
			map[string]string{"cluster-enabled": "yes", "port": "7000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			in := strings.NewReplacer("DIR", dir)
			for name, text := range c.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(in.Replace(text)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			args := make([]string, len(c.args))
			for i, a := range c.args {
				args[i] = in.Replace(a)
			}
			settings, file, err := params.ParseArgs(args)
			if err != nil {
				t.Fatal(err)
			}
			s, err := commands.New(server.Options{Settings: settings, ConfigFile: file, LoadLater: true, Log: io.Discard})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			for name, want := range c.want {
				if got := s.Config.Value(name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		})
	}
}
