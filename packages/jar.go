package main

// The Java artifacts, as a Maven repository. Each has a jar, its sources, its documentation and its pom. The jar of
// limitkv-junit contains the binaries of all platforms, so that users need only one dependency. limitkv-limiters contains
// packages/integrations/java. javac compiles; Maven fetches the dependencies.

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// artifact is a jar that Maven projects can depend on.
type artifact struct {
	name     string
	pom, src string // the pom, as a template without the version, and the folder of the sources
	java     string // the oldest Java that the classes run on
	module   string
	binaries string // the folder in the jar for the binaries, by platform; "" if there are none
}

var artifacts = []artifact{
	{"limitkv-junit", "packages/java/pom.xml", "packages/java/src", "11", "io.github.limitkv.junit", "io/github/limitkv/junit/bin/"},
	{"limitkv-limiters", "packages/integrations/java/pom.xml", "packages/integrations/java/src/main/java", "17", "io.github.limitkv", ""},
}

func (r *release) jars() error {
	for _, a := range artifacts {
		if err := r.jar(a); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	return nil
}

func (r *release) jar(a artifact) error {
	tmp, err := os.MkdirTemp("", "limitkv-java-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	template, err := os.ReadFile(a.pom)
	if err != nil {
		return err
	}
	pom := r.fill(template)
	if err := os.WriteFile(filepath.Join(tmp, "pom.xml"), pom, 0o644); err != nil {
		return err
	}
	sources, err := readFiles(a.src, "")
	if err != nil {
		return err
	}
	classes, pages, err := compileJava(a, tmp, sources)
	if err != nil {
		return err
	}
	manifest := file{"META-INF/MANIFEST.MF", 0o644, []byte("Manifest-Version: 1.0\r\nAutomatic-Module-Name: " + a.module + "\r\n" +
		"Implementation-Version: " + r.version + "\r\n\r\n")}
	texts, err := r.texts()
	if err != nil {
		return err
	}
	if a.binaries == "" {
		texts = texts[:1] // without the licences of the binary's parts
	}
	files := []file{manifest}
	for _, t := range texts {
		files = append(files, file{"META-INF/" + t.name, t.mode, t.data})
	}
	files = append(files, classes...)
	for _, p := range r.platforms {
		if a.binaries == "" {
			break
		}
		sum := sha256.Sum256(r.binaries[p])
		dir := a.binaries + p.java + "/"
		files = append(files, file{dir + p.program(), 0o755, r.binaries[p]}, file{dir + "sha256", 0o644, []byte(hex.EncodeToString(sum[:]))})
	}
	if err := r.artifact(a, ".pom", pom); err != nil {
		return err
	}
	for ending, files := range map[string][]file{".jar": files, "-sources.jar": append([]file{manifest}, sources...),
		"-javadoc.jar": append([]file{manifest}, pages...)} {
		data, err := zipOf(files, r.time)
		if err != nil {
			return err
		}
		if err := r.artifact(a, ending, data); err != nil {
			return err
		}
	}
	return nil
}

// compileJava compiles an artifact and generates its documentation, in a folder that contains its pom.
func compileJava(a artifact, tmp string, sources []file) (classes, pages []file, err error) {
	classpath := filepath.Join(tmp, "classpath")
	if err := maven(filepath.Join(tmp, "pom.xml"), classpath); err != nil {
		return nil, nil, err
	}
	libraries, err := os.ReadFile(classpath)
	if err != nil {
		return nil, nil, err
	}
	args := []string{"--release", a.java, "-encoding", "UTF-8", "-cp", string(libraries)}
	var names []string
	for _, f := range sources {
		names = append(names, filepath.Join(a.src, filepath.FromSlash(f.name)))
	}
	compiled, documented := filepath.Join(tmp, "classes"), filepath.Join(tmp, "pages")
	// -classfile: annotations in libraries may name classes that are missing here.
	if err := run("javac", append(append([]string{"-Xlint:all,-processing,-classfile", "-Werror", "-d", compiled}, args...), names...)...); err != nil {
		return nil, nil, err
	}
	if err := run("javadoc", append(append([]string{"-quiet", "-notimestamp", "-Xdoclint:all,-missing", "-d", documented}, args...), names...)...); err != nil {
		return nil, nil, err
	}
	if classes, err = readFiles(compiled, ""); err != nil {
		return nil, nil, err
	}
	pages, err = readFiles(documented, "")
	return classes, pages, err
}

// artifact writes a file of the repository, and the checksum that Maven expects.
func (r *release) artifact(a artifact, ending string, data []byte) error {
	name := "maven/io/github/limitkv/" + a.name + "/" + r.version + "/" + a.name + "-" + r.version + ending
	sum := sha1.Sum(data)
	if err := r.write(name+".sha1", []byte(hex.EncodeToString(sum[:]))); err != nil {
		return err
	}
	return r.write(name, data)
}

// maven writes the class path of a project: offline if all dependencies are present, else from Maven's repositories.
func maven(pom, classpath string) (err error) {
	args := []string{"-q", "-B", "-f", pom, "dependency:build-classpath", "-Dmdep.outputFile=" + classpath}
	if exec.Command("mvn", append([]string{"-o"}, args...)...).Run() == nil {
		return nil
	}
	return run("mvn", args...)
}

// run runs a program. If it fails, its output is in the error.
func run(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}
