package main

// npm packages: limitkv; @limitkv/PLATFORM with the binary for each platform, of which npm installs the one that fits; and
// @limitkv/middleware, the code of packages/integrations/node for Express and Fastify.

import (
	"os"
	"strings"
)

func (r *release) npm() error {
	texts, err := r.texts()
	if err != nil {
		return err
	}
	files, err := readFiles("packages/npm/limitkv", "package")
	if err != nil {
		return err
	}
	for i, f := range files {
		files[i].data = r.fill(f.data)
		if strings.HasPrefix(string(f.data), "#!") {
			files[i].mode = 0o755
		}
	}
	if err := r.tarball("limitkv", append(files, file{"package/LICENSE", 0o644, texts[0].data})); err != nil {
		return err
	}
	template, err := os.ReadFile("packages/npm/platform/package.json")
	if err != nil {
		return err
	}
	for _, p := range r.platforms {
		system, processor, _ := strings.Cut(p.npm, "-")
		manifest := strings.NewReplacer("@PLATFORM@", p.npm, "@OS@", system, "@CPU@", processor).Replace(string(r.fill(template)))
		files := []file{{"package/package.json", 0o644, []byte(manifest)}, {"package/" + p.program(), 0o755, r.binaries[p]}}
		for _, t := range texts {
			files = append(files, file{"package/" + t.name, t.mode, t.data})
		}
		if err := r.tarball("limitkv-"+p.npm, files); err != nil {
			return err
		}
	}
	if files, err = readFiles("packages/npm/middleware", "package"); err != nil {
		return err
	}
	for i, f := range files {
		files[i].data = r.fill(f.data)
	}
	for _, name := range []string{"express.js", "fastify.js", "limiter.js"} {
		data, err := os.ReadFile("packages/integrations/node/" + name)
		if err != nil {
			return err
		}
		files = append(files, file{"package/" + name, 0o644, data})
	}
	return r.tarball("limitkv-middleware", append(files, file{"package/LICENSE", 0o644, texts[0].data}))
}

func (r *release) tarball(name string, files []file) error {
	data, err := tarGzOf(files, r.time)
	if err != nil {
		return err
	}
	return r.write("npm/"+name+"-"+r.version+".tgz", data)
}
