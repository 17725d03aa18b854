// Running programs of other languages, with their client libraries. Libraries are fetched once, by the language's own
// package client, into the user's cache. Where a language or its library is not at hand the test is skipped; in CI it
// fails.
package documents

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// The libraries that the programs use.
const (
	nodeRedis    = "redis@5.8.2"
	pythonRESP2  = "redis==6.4.0" // the last that speaks RESP2 unless told
	pythonRESP3  = "redis==8.1.0"
	jedis        = "redis.clients:jedis:6.2.0"
	redissonPart = "org.redisson:redisson:4.7.0"
)

// A runner runs a source and returns what it prints.
type runner func(t *testing.T, source string) []byte

// runners has, by language, who runs a program: each on a server of its own, and all must print the same.
var runners = map[string][]runner{
	"go": {runGo}, "python": {runPython(pythonRESP2), runPython(pythonRESP3)}, "js": {runNode}, "java": {runJava},
}

const (
	runTimeout   = 3 * time.Minute
	fetchTimeout = 5 * time.Minute
)

// missing skips the test, or fails it in CI.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// output runs a command to its end.
func output(t *testing.T, dir string, env []string, timeout time.Duration, name string, args ...string) ([]byte, bool) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var errors strings.Builder
	cmd.Stderr = &errors
	timer := time.AfterFunc(timeout, func() {
		if cmd.Process != nil {
			cmd.Process.Kill()
		}
	})
	defer timer.Stop()
	out, err := cmd.Output()
	if err != nil {
		t.Logf("%s %s: %v\n%s\n%s", name, strings.Join(args, " "), err, out, errors.String())
	}
	return out, err == nil
}

func mustRun(t *testing.T, dir string, env []string, name string, args ...string) []byte {
	t.Helper()
	out, ok := output(t, dir, env, runTimeout, name, args...)
	if !ok {
		t.Fatal("the program failed")
	}
	return out
}

// cache is a folder that keeps a library between runs; fetch fills it where it is not there yet.
func cache(t *testing.T, library string, fetch func(dir string) bool) string {
	t.Helper()
	base, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	name := strings.NewReplacer(":", "-", "@", "-", "=", "-").Replace(library)
	dir := filepath.Join(base, "limitkv-documents", name)
	if _, err := os.Stat(filepath.Join(dir, "complete")); err == nil {
		return dir
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if !fetch(dir) {
		missing(t, library+" is not at hand")
	}
	if err := os.WriteFile(filepath.Join(dir, "complete"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		missing(t, program+" is not at hand")
	}
}

func write(t *testing.T, path, source string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
}

// goPackage makes a package within this module, which has the libraries, until the test ends; a folder with a leading dot is
// no package of it otherwise.
func goPackage(t *testing.T, source string) (dir string) {
	t.Helper()
	root, err := peer.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = os.MkdirTemp(root, ".document-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	write(t, filepath.Join(dir, "main.go"), source)
	return dir
}

func runGo(t *testing.T, source string) []byte {
	return mustRun(t, goPackage(t, source), nil, "go", "run", ".")
}

func runPython(library string) runner {
	return func(t *testing.T, source string) []byte {
		need(t, "python3")
		dir := cache(t, library, func(dir string) bool {
			_, ok := output(t, dir, nil, fetchTimeout, "python3", "-m", "pip", "install", "--quiet", "--target", dir, library)
			return ok
		})
		path := filepath.Join(t.TempDir(), "program.py")
		write(t, path, source)
		return mustRun(t, "", []string{"PYTHONPATH=" + dir}, "python3", path)
	}
}

func runNode(t *testing.T, source string) []byte {
	need(t, "node")
	need(t, "npm")
	dir := cache(t, nodeRedis, func(dir string) bool {
		_, ok := output(t, dir, nil, fetchTimeout, "npm", "install", "--silent", "--prefix", dir, nodeRedis)
		return ok
	})
	path := filepath.Join(dir, "program-"+filepath.Base(t.TempDir())+strings.ReplaceAll(t.Name(), "/", "-")+".mjs")
	write(t, path, source)
	defer os.Remove(path)
	return mustRun(t, dir, nil, "node", path)
}

func runJava(t *testing.T, source string) []byte {
	need(t, "java")
	need(t, "mvn")
	dir := cache(t, jedis+"+"+redissonPart, func(dir string) bool {
		write(t, filepath.Join(dir, "pom.xml"), pom(jedis, redissonPart))
		_, ok := output(t, dir, nil, fetchTimeout, "mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory="+dir)
		return ok
	})
	path := filepath.Join(t.TempDir(), "Main.java")
	write(t, path, source)
	return mustRun(t, "", nil, "java", "-cp", dir+string(os.PathListSeparator)+filepath.Join(dir, "*"), path)
}

// pom is a project that needs the given artifacts, and a silent logger.
func pom(artifacts ...string) string {
	var b strings.Builder
	b.WriteString(`<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>` +
		`<groupId>limitkv</groupId><artifactId>documents</artifactId><version>1</version><dependencies>`)
	for _, a := range append(artifacts, "org.slf4j:slf4j-nop:2.0.17") {
		part := strings.Split(a, ":")
		b.WriteString("<dependency><groupId>" + part[0] + "</groupId><artifactId>" + part[1] + "</artifactId><version>" + part[2] + "</version></dependency>")
	}
	b.WriteString("</dependencies></project>\n")
	return b.String()
}
