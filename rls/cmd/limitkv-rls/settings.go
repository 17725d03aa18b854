package main

// The settings: flags, each of which can be an environment variable too. If envoyproxy/ratelimit has a variable with the same
// meaning, its name is used.

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/limitkv/limitkv/rls/config"
	"github.com/limitkv/limitkv/rls/service"
)

// settings is the result of the command line and the environment.
type settings struct {
	grpc, http string
	source     config.Source
	reload     time.Duration
	check      bool
	server     service.Server
	opts       service.Options
	grpcTLS    *tls.Config
	maxAge     time.Duration
	maxGrace   time.Duration
	needs      bool // health needs limitkv
}

// raw is the flags from which settings are made.
type raw struct {
	settings
	auth, failure             string
	useTLS, headers, together bool
	mustTLS                   bool // the variable requires TLS towards Envoy
	ca, cert, key             string
	grpcCA, grpcCert, grpcKey string
	names                     service.Headers
}

// env maps flags to their variables.
var env = map[string]string{
	"config": "LIMITKV_RLS_CONFIG", "merge-domains": "MERGE_DOMAIN_CONFIG",
	"limitkv": "REDIS_URL", "auth": "REDIS_AUTH", "tls": "REDIS_TLS", "tls-ca": "REDIS_TLS_CACERT",
	"tls-cert": "REDIS_TLS_CLIENT_CERT", "tls-key": "REDIS_TLS_CLIENT_KEY",
	"key-prefix": "CACHE_KEY_PREFIX", "timeout": "LIMITKV_RLS_TIMEOUT", "failure-mode": "LIMITKV_RLS_FAILURE_MODE",
	"all-or-nothing": "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", "shadow-mode": "SHADOW_MODE", "near-limit-ratio": "NEAR_LIMIT_RATIO",
	"headers": "LIMIT_RESPONSE_HEADERS_ENABLED", "limit-header": "LIMIT_LIMIT_HEADER",
	"remaining-header": "LIMIT_REMAINING_HEADER", "reset-header": "LIMIT_RESET_HEADER",
	"grpc-tls-cert": "GRPC_SERVER_TLS_CERT", "grpc-tls-key": "GRPC_SERVER_TLS_KEY", "grpc-tls-ca": "GRPC_CLIENT_TLS_CACERT",
	"max-connection-age": "GRPC_MAX_CONNECTION_AGE", "max-connection-age-grace": "GRPC_MAX_CONNECTION_AGE_GRACE",
	"health-needs-limitkv": "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION",
}

// unsupported maps variables of envoyproxy/ratelimit for features that do not exist here to the values that do not need them.
var unsupported = map[string][]string{
	"CONFIG_TYPE": {"", "FILE"}, "BACKEND_TYPE": {"", "redis"}, "REDIS_TYPE": {"", "SINGLE", "single"}, "REDIS_PERSECOND": {"", "false"},
	"GRPC_UDS": {""}, "GRPC_CLIENT_TLS_SAN": {""}, "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION": {"", "false"},
}

func (r *raw) flags(out io.Writer) *flag.FlagSet {
	fs := flag.NewFlagSet("limitkv-rls", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.StringVar(&r.source.Path, "config", "", "YAML `file` of envoyproxy/ratelimit, or a folder with such files")
	fs.BoolVar(&r.source.Merge, "merge-domains", false, "let several files have parts of one domain")
	fs.DurationVar(&r.reload, "reload", time.Second, "how often to look whether the files have changed")
	fs.BoolVar(&r.check, "check", false, "read the configuration, say what is wrong with it, and end")
	fs.StringVar(&r.grpc, "grpc", "127.0.0.1:8081", "`address` for Envoy; variables GRPC_HOST, GRPC_PORT")
	fs.StringVar(&r.http, "http", "127.0.0.1:8080", "`address` for /metrics, /healthz and /json, \"\" for none; variables HOST, PORT")
	fs.StringVar(&r.server.Addr, "limitkv", "127.0.0.1:6379", "`address` of limitkv, or the path of its Unix socket")
	fs.StringVar(&r.auth, "auth", "", "`password` or user:password for limitkv; better as a variable")
	fs.IntVar(&r.server.DB, "db", 0, "`number` of the database")
	fs.BoolVar(&r.useTLS, "tls", false, "speak TLS with limitkv")
	fs.StringVar(&r.ca, "tls-ca", "", "`file` with the certificates that limitkv's is signed by")
	fs.StringVar(&r.cert, "tls-cert", "", "`file` with the certificate to show to limitkv")
	fs.StringVar(&r.key, "tls-key", "", "`file` with its key")
	fs.StringVar(&r.opts.Prefix, "key-prefix", "rls:", "`text` in front of every key")
	fs.DurationVar(&r.opts.Timeout, "timeout", 100*time.Millisecond, "how long limitkv may take for a request")
	fs.StringVar(&r.failure, "failure-mode", "error", "what to answer when it takes longer: `error`, allow or deny")
	fs.BoolVar(&r.together, "all-or-nothing", true, "charge a request that is refused to no other limit")
	fs.BoolVar(&r.opts.Shadow, "shadow-mode", false, "answer OK to everything, and count")
	fs.Float64Var(&r.opts.NearRatio, "near-limit-ratio", 0.8, "`part` of a limit from which on metrics say that it is near")
	fs.BoolVar(&r.headers, "headers", false, "tell clients of their limit in headers")
	fs.StringVar(&r.names.Limit, "limit-header", "RateLimit-Limit", "`name` of the header with the limit")
	fs.StringVar(&r.names.Remaining, "remaining-header", "RateLimit-Remaining", "`name` of the header with what is left")
	fs.StringVar(&r.names.Reset, "reset-header", "RateLimit-Reset", "`name` of the header with the seconds until the limit is full")
	fs.StringVar(&r.names.RetryAfter, "retry-after-header", "Retry-After", "`name` of the header with the seconds to wait when refused")
	fs.StringVar(&r.grpcCert, "grpc-tls-cert", "", "`file` with the certificate to show to Envoy, which turns TLS on")
	fs.StringVar(&r.grpcKey, "grpc-tls-key", "", "`file` with its key")
	fs.StringVar(&r.grpcCA, "grpc-tls-ca", "", "`file` with the certificates that Envoy's has to be signed by")
	fs.DurationVar(&r.maxAge, "max-connection-age", 0, "end gRPC connections after so long, 0 for never")
	fs.DurationVar(&r.maxGrace, "max-connection-age-grace", 0, "what a connection that ends has for its requests, 0 for any time")
	fs.BoolVar(&r.needs, "health-needs-limitkv", false, "be unhealthy while limitkv is away")
	fs.Usage = func() {
		fmt.Fprint(out, "limitkv-rls answers Envoy's rate limit service (v3) from limitkv.\n\n")
		fs.VisitAll(func(f *flag.Flag) {
			name, usage := flag.UnquoteUsage(f)
			fmt.Fprintf(out, "  --%-26s %s", strings.TrimSpace(f.Name+" "+name), usage)
			if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "0s" {
				fmt.Fprintf(out, " (%s)", f.DefValue)
			}
			if env[f.Name] != "" {
				fmt.Fprintf(out, " [%s]", env[f.Name])
			}
			fmt.Fprintln(out)
		})
	}
	return fs
}

// read reads the settings. Flags override variables.
func read(args []string, lookup func(string) (string, bool), out io.Writer) (*settings, error) {
	r := &raw{}
	fs := r.flags(out)
	get := func(name string) string { v, _ := lookup(name); return v }
	for name, harmless := range unsupported {
		v := get(name)
		for _, ok := range harmless {
			if v == ok {
				v = ""
			}
		}
		if v != "" {
			return nil, fmt.Errorf("%s=%s is not supported", name, v)
		}
	}
	for flag, name := range env {
		if v, ok := lookup(name); ok && v != "" {
			if err := fs.Set(flag, v); err != nil {
				return nil, fmt.Errorf("%s=%s: %w", name, v, err)
			}
		}
	}
	switch get("GRPC_SERVER_USE_TLS") {
	case "false":
		r.grpcCert, r.grpcKey, r.grpcCA = "", "", ""
	case "true":
		r.mustTLS = true
	}
	r.grpc = address(r.grpc, get("GRPC_HOST"), get("GRPC_PORT"))
	r.http = address(r.http, get("HOST"), get("PORT"))
	if root := get("RUNTIME_ROOT"); root != "" && r.source.Path == "" {
		app := get("RUNTIME_APPDIRECTORY")
		if app == "" {
			app = "config"
		}
		r.source.Path = filepath.Join(root, get("RUNTIME_SUBDIRECTORY"), app)
	}
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unknown argument %q", fs.Arg(0))
	}
	return &r.settings, r.finish()
}

// address returns the address to listen on, with host and port from the variables of envoyproxy/ratelimit if they are set.
func address(given, host, port string) string {
	h, p, err := net.SplitHostPort(given)
	if err != nil || host == "" && port == "" {
		return given
	}
	if host != "" {
		h = host
	}
	if port != "" {
		p = port
	}
	return net.JoinHostPort(h, p)
}

// finish checks the flags and makes the settings from them.
func (r *raw) finish() error {
	switch r.failure {
	case "error":
		r.opts.Failure = service.FailError
	case "allow":
		r.opts.Failure = service.FailAllow
	case "deny":
		r.opts.Failure = service.FailDeny
	default:
		return fmt.Errorf("failure-mode %q is none of error, allow and deny", r.failure)
	}
	switch {
	case r.source.Path == "":
		return errors.New("--config is missing: the YAML file of the limits, or a folder with such files")
	case r.opts.Timeout <= 0 || r.reload <= 0:
		return errors.New("--timeout and --reload have to be more than 0")
	case !(r.opts.NearRatio >= 0 && r.opts.NearRatio <= 1):
		return errors.New("--near-limit-ratio can be 0 to 1")
	}
	r.opts.Alone = !r.together
	if r.headers {
		r.opts.Headers = r.names
	}
	r.server.Password = r.auth
	if user, password, ok := strings.Cut(r.auth, ":"); ok {
		r.server.Username, r.server.Password = user, password
	}
	r.server.Timeout = r.opts.Timeout
	var err error
	if r.useTLS {
		if r.server.TLS, err = tlsConfig(r.cert, r.key); err != nil {
			return err
		}
		if r.ca != "" {
			if r.server.TLS.RootCAs, err = pool(r.ca); err != nil {
				return err
			}
		}
	} else if r.ca != "" || r.cert != "" || r.key != "" {
		return errors.New("--tls is missing, without which limitkv is spoken to in clear")
	}
	if r.grpcCert != "" {
		if r.grpcTLS, err = tlsConfig(r.grpcCert, r.grpcKey); err != nil {
			return err
		}
		if r.grpcCA != "" {
			if r.grpcTLS.ClientCAs, err = pool(r.grpcCA); err != nil {
				return err
			}
			r.grpcTLS.ClientAuth = tls.RequireAndVerifyClientCert
		}
	} else if r.grpcCA != "" || r.grpcKey != "" || r.mustTLS {
		return errors.New("--grpc-tls-cert is missing")
	}
	return nil
}

func tlsConfig(cert, key string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if cert == "" && key == "" {
		return c, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	c.Certificates = []tls.Certificate{pair}
	return c, err
}

func pool(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate", file)
	}
	return p, nil
}
