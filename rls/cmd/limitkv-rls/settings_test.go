// Tests of the command line and the variables of envoyproxy/ratelimit.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/rls/service"
)

func settle(args string, vars map[string]string) (*settings, error) {
	return read(strings.Fields(args), func(name string) (string, bool) { v, ok := vars[name]; return v, ok }, io.Discard)
}

func TestSettings(t *testing.T) {
	s, err := settle("--config x.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.grpc != "127.0.0.1:8081" || s.http != "127.0.0.1:8080" || s.opts.Prefix != "rls:" || s.opts.Timeout != 100*time.Millisecond ||
		s.opts.Headers != (service.Headers{}) || s.opts.Alone || s.server.Addr != "127.0.0.1:6379" || s.reload != time.Second || s.needs {
		t.Errorf("%+v", s)
	}
	vars := map[string]string{
		"RUNTIME_ROOT": "/data", "RUNTIME_SUBDIRECTORY": "ratelimit", "GRPC_HOST": "0.0.0.0", "PORT": "9000", "REDIS_URL": "kv:1", "REDIS_AUTH": "u:p:q",
		"LIMIT_RESPONSE_HEADERS_ENABLED": "true", "LIMIT_RESET_HEADER": "x-reset", "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT": "false",
		"SHADOW_MODE": "true", "NEAR_LIMIT_RATIO": "0.5", "CACHE_KEY_PREFIX": "c_", "GRPC_MAX_CONNECTION_AGE": "1h", "REDIS_TYPE": "SINGLE",
	}
	if s, err = settle("--limitkv other:2 --failure-mode deny", vars); err != nil {
		t.Fatal(err)
	}
	if s.source.Path != "/data/ratelimit/config" || s.grpc != "0.0.0.0:8081" || s.http != "127.0.0.1:9000" || s.server.Addr != "other:2" ||
		s.server.Username != "u" || s.server.Password != "p:q" || s.opts.Headers.Reset != "x-reset" || s.opts.Headers.Limit != "RateLimit-Limit" ||
		!s.opts.Alone || !s.opts.Shadow || s.opts.NearRatio != 0.5 || s.opts.Prefix != "c_" || s.maxAge != time.Hour || s.opts.Failure != service.FailDeny {
		t.Errorf("%+v", s)
	}
	for _, x := range []struct{ args, name, value, want string }{
		{"", "", "", "--config is missing: the YAML file of the limits, or a folder with such files"},
		{"--config x --failure-mode x", "", "", `failure-mode "x" is none of error, allow and deny`},
		{"--config x --timeout 0s", "", "", "--timeout and --reload have to be more than 0"},
		{"--config x --near-limit-ratio NaN", "", "", "--near-limit-ratio can be 0 to 1"},
		{"--config x y", "", "", `unknown argument "y"`},
		{"--config x --nonsense", "", "", "flag provided but not defined: -nonsense"},
		{"--config x --grpc-tls-key k", "", "", "--grpc-tls-cert is missing"},
		{"--config x --tls-ca ca", "", "", "--tls is missing, without which limitkv is spoken to in clear"},
		{"--config x", "GRPC_SERVER_USE_TLS", "true", "--grpc-tls-cert is missing"},
		{"--config x", "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", "true", "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION=true is not supported"},
		{"--config x", "REDIS_TYPE", "cluster", "REDIS_TYPE=cluster is not supported"},
		{"--config x", "CONFIG_TYPE", "GRPC_XDS_SOTW", "CONFIG_TYPE=GRPC_XDS_SOTW is not supported"},
		{"--config x", "REDIS_PERSECOND", "true", "REDIS_PERSECOND=true is not supported"},
		{"--config x", "SHADOW_MODE", "maybe", "SHADOW_MODE=maybe: parse error"},
	} {
		if _, err := settle(x.args, map[string]string{x.name: x.value}); err == nil || err.Error() != x.want {
			t.Errorf("%s %s=%s: %v, want %s", x.args, x.name, x.value, err, x.want)
		}
	}
	var help bytes.Buffer
	if _, err := read([]string{"--help"}, func(string) (string, bool) { return "", false }, &help); !errors.Is(err, flag.ErrHelp) {
		t.Error(err)
	}
	for flag, name := range env {
		if !strings.Contains(help.String(), "--"+flag+" ") || !strings.Contains(help.String(), fmt.Sprintf("[%s]", name)) {
			t.Errorf("help has no --%s [%s]", flag, name)
		}
	}
}

// The command lines of docs/envoy.md.
func TestDocumentedLines(t *testing.T) {
	text, err := os.ReadFile("../../../docs/envoy.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile("bin/limitkv-rls (--[^&`\n]*)").FindAllStringSubmatch(string(text), -1)
	if len(lines) < 3 {
		t.Fatalf("only %q", lines)
	}
	for _, line := range lines {
		if _, err := settle(line[1], nil); err != nil && !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%s: %v", line[0], err)
		}
	}
}
