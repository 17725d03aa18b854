package main

// Suites of Python packages: the package's source archive is unpacked and tested by pytest, with the libraries of two lock
// files in a virtual environment.

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// locks are the files that say which libraries are used, at which versions: the clients' own, and what their tests need.
var locks = []string{"conformance/clients/python/requirements.txt", "conformance/suites/requirements.txt"}

// plugin gives the fixtures that suites have from what is not there.
const plugin = "conformance/suites/limitkvsuites.py"

type python struct{}

// fetch implements kind.
func (p python) fetch(s suite) (place string, err error) {
	version, err := p.version(s.pkg)
	if err != nil {
		return "", err
	}
	if _, err := p.libraries(); err != nil {
		return "", err
	}
	cache, err := cached("python", s.pkg+"-"+version)
	if err != nil {
		return "", err
	}
	place = filepath.Join(cache, s.pkg+"-"+version)
	if exists(filepath.Join(cache, "done")) {
		return place, nil
	}
	for _, args := range [][]string{
		{"python3", "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", cache, s.pkg + "==" + version},
		{"tar", "-C", cache, "-xzf", place + ".tar.gz"},
	} {
		if err := loudly(args...); err != nil {
			return "", err
		}
	}
	return place, os.WriteFile(filepath.Join(cache, "done"), nil, 0o644)
}

// version reads a package's version from the lock files.
func (python) version(name string) (string, error) {
	for _, path := range locks {
		b, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		for line := range strings.Lines(string(b)) {
			if version, ok := strings.CutPrefix(strings.TrimSpace(line), name+"=="); ok {
				return version, nil
			}
		}
	}
	return "", fmt.Errorf("no lock file has the version of %s", name)
}

// libraries makes the virtual environment and returns its Python.
func (python) libraries() (string, error) {
	h := sha256.New()
	install := []string{"-m", "pip", "install", "-q", "--no-deps"}
	for _, path := range locks {
		b, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		h.Write(b)
		install = append(install, "-r", path)
	}
	cache, err := cached("python", fmt.Sprintf("libraries-%x", h.Sum(nil)[:8]))
	if err != nil {
		return "", err
	}
	interpreter := filepath.Join(cache, "bin", "python")
	if exists(filepath.Join(cache, "done")) {
		return interpreter, nil
	}
	if err := loudly("python3", "-m", "venv", cache); err != nil {
		return "", err
	}
	if err := loudly(append([]string{interpreter}, install...)...); err != nil {
		return "", err
	}
	return interpreter, os.WriteFile(filepath.Join(cache, "done"), nil, 0o644)
}

// testMaxSeconds is the longest that a test may take.
const testMaxSeconds = 60

// command implements kind. The package's own settings of pytest are not used: they ask for reports and for plugins that
// make them.
func (p python) command(s suite, place, dir string, only []string) (*exec.Cmd, error) {
	interpreter, err := p.libraries()
	if err != nil {
		return nil, err
	}
	plugins, err := filepath.Abs(filepath.Dir(plugin))
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(interpreter, "-m", "pytest", "-v", "-c", os.DevNull, "--rootdir", ".", "-p", "no:cacheprovider",
		"-p", strings.TrimSuffix(filepath.Base(plugin), ".py"), "-o", "asyncio_mode=auto", "-o", "junit_family=xunit1", "-W", "ignore", "--tb", "short",
		"--timeout", fmt.Sprint(testMaxSeconds), "--junitxml", filepath.Join(dir, reportFile))
	cmd.Args = append(cmd.Args, s.args...)
	if only == nil {
		cmd.Args = append(cmd.Args, s.tests...)
	} else {
		cmd.Args = append(cmd.Args, only...)
	}
	cmd.Dir = place
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(interpreter)+":"+os.Getenv("PATH"), "PYTHONPATH="+plugins)
	cmd.Env = append(cmd.Env, s.env...)
	return cmd, nil
}

// results implements kind. A test's name is what pytest takes to run it.
func (python) results(dir, log string) (map[string]result, error) {
	report := filepath.Join(dir, reportFile)
	if !exists(report) {
		return nil, fmt.Errorf("no report: %s", tail(log))
	}
	return readReport(report)
}
