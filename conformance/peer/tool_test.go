package peer

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Of the programs in PATH only those of the Redis that is compared with are used.
func TestToolsOfOtherVersions(t *testing.T) {
	for said, is := range map[string]bool{
		"redis-cli 8.0.6": true,
		"Redis server v=8.0.6 sha=00000000:1 malloc=libc": true,
		"redis-cli v=8.0.6 sha=00000000:1 malloc=libc":    true,
		"redis-cli 7.0.15": false,
		"redis-cli 8.10.2": false,
		"redis-cli v=8.10.2 sha=00000000:1 malloc=libc": false,
		"redis-cli 6.0.16":                                       false,
		"valkey-cli 9.1.2":                                       false,
		"[offset 0] Checking RDB file --version":                 false,
		"Cannot open file: --version":                            false,
		"redis-cli: error while loading shared libraries: 8.0.6": false,
	} {
		dir := t.TempDir()
		script := fmt.Sprintf("#!/bin/sh\necho '%s'\n", said)
		if err := os.WriteFile(filepath.Join(dir, "redis-cli"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, server := range []string{"", filepath.Join(dir, "redis-server")} {
			t.Setenv("PATH", dir+":/bin:/usr/bin")
			t.Setenv("REDIS_SERVER", server)
			if server != "" {
				t.Setenv("PATH", t.TempDir()+":/bin")
			}
			if path, err := tool("redis-cli"); is != (err == nil) || is && path != filepath.Join(dir, "redis-cli") {
				t.Errorf("%q: %q, %v", said, path, err)
			}
		}
	}
	t.Setenv("PATH", t.TempDir())
	t.Setenv("REDIS_SERVER", "")
	if path, err := tool("redis-cli"); err == nil {
		t.Errorf("%q", path)
	}
}
