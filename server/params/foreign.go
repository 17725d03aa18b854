package params

// Parameters from the configuration files of other servers, which Redis 8.0 does not have.

import "strings"

// foreign maps parameters of Valkey and of later versions of Redis to their name here. Those without one have no effect, since
// limitkv lacks what they configure.
var foreign = map[string]string{
	"primaryauth":                                  "masterauth",
	"primaryuser":                                  "masteruser",
	"commandlog-execution-slower-than":             "slowlog-log-slower-than",
	"commandlog-slow-execution-max-len":            "slowlog-max-len",
	"commandlog-request-larger-than":               "",
	"commandlog-large-request-max-len":             "",
	"commandlog-reply-larger-than":                 "",
	"commandlog-large-reply-max-len":               "",
	"cluster-announce-client-ipv4":                 "",
	"cluster-announce-client-ipv6":                 "",
	"cluster-announce-client-port":                 "",
	"cluster-announce-client-tls-port":             "",
	"cluster-blacklist-ttl":                        "",
	"cluster-config-save-behavior":                 "",
	"cluster-databases":                            "",
	"cluster-manual-failover-timeout":              "",
	"cluster-slot-migration-log-max-len":           "",
	"cluster-slot-stats-enabled":                   "",
	"active-defrag-cycle-us":                       "",
	"availability-zone":                            "",
	"dual-channel-replication-enabled":             "",
	"extended-redis-compatibility":                 "",
	"hash-seed":                                    "",
	"import-mode":                                  "",
	"log-format":                                   "",
	"log-timestamp-format":                         "",
	"mptcp":                                        "",
	"repl-mptcp":                                   "",
	"prefetch-batch-max-size":                      "",
	"rdb-version-check":                            "",
	"rdma-bind":                                    "",
	"rdma-port":                                    "",
	"rdma-completion-vector":                       "",
	"rdma-rx-size":                                 "",
	"slot-migration-max-failover-repl-bytes":       "",
	"tls-auth-clients-user":                        "",
	"tls-auto-reload-interval":                     "",
	"unixsocketgroup":                              "",
	"array-slice-size":                             "",
	"array-sparse-kmax":                            "",
	"array-sparse-kmin":                            "",
	"backup-sealed-ttl":                            "",
	"backupdirname":                                "",
	"cluster-bus-port-protected-mode":              "",
	"cluster-slot-migration-handoff-max-lag-bytes": "",
	"cluster-slot-migration-write-pause-timeout":   "",
	"hash-max-template-entries":                    "",
	"hash-min-template-entries":                    "",
	"hash-rdb-load-max-template-entries":           "",
	"hash-rdb-load-min-template-entries":           "",
	"hash-rdb-load-template-disassembly-threshold": "",
	"key-memory-histograms":                        "",
	"lookahead":                                    "",
	"preload-file":                                 "",
	"slowlog-entry-max-argc":                       "",
	"slowlog-entry-max-string-len":                 "",
	"stream-idmp-duration":                         "",
	"stream-idmp-maxsize":                          "",
	"vset-force-single-threaded-execution":         "",
	// Of earlier versions of Redis. Redis ignores them, too.
	"list-max-ziplist-entries": "",
	"list-max-ziplist-value":   "",
	"lua-replicate-commands":   "",
	"io-threads-do-reads":      "",
}

// ours returns the parameter that a setting names, nil if it has no effect. ok is false if the name is unknown.
func (c *Config) ours(set Setting) (p *Param, ok bool) {
	name, other := foreign[strings.ToLower(set.Name)]
	if !other {
		p = c.Find(set.Name)
		return p, p != nil
	}
	return c.Find(name), true
}
