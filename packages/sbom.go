package main

// The bill of materials, in CycloneDX format, from the build information that Go stores in the binaries.

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// component is a part of the software.
type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
}

// dependency lists the parts of a component.
type dependency struct {
	Ref  string   `json:"ref"`
	Deps []string `json:"dependsOn"`
}

// bill writes the bill of materials, one for all platforms: a module linked into any of the binaries is listed.
func (r *release) bill() error {
	parts := map[string]component{}
	for _, binary := range r.binaries {
		info, err := buildinfo.Read(bytes.NewReader(binary))
		if err != nil {
			return err
		}
		add := func(name, version string) {
			purl := "pkg:golang/" + name + "@" + version
			parts[purl] = component{"library", purl, name, version, purl}
		}
		add("stdlib", strings.TrimPrefix(info.GoVersion, "go"))
		for _, m := range info.Deps {
			add(m.Path, m.Version)
		}
	}
	self := "pkg:golang/github.com/limitkv/limitkv@" + r.version
	of := dependency{Ref: self}
	components := []component{}
	for _, c := range parts {
		components = append(components, c)
		of.Deps = append(of.Deps, c.Ref)
	}
	slices.SortFunc(components, func(a, b component) int { return strings.Compare(a.Ref, b.Ref) })
	slices.Sort(of.Deps)
	bill := struct {
		Format       string         `json:"bomFormat"`
		Spec         string         `json:"specVersion"`
		Version      int            `json:"version"`
		Metadata     map[string]any `json:"metadata"`
		Components   []component    `json:"components"`
		Dependencies []dependency   `json:"dependencies"`
	}{"CycloneDX", "1.5", 1, map[string]any{
		"timestamp": r.time.Format(time.RFC3339),
		"component": component{"application", self, "limitkv", r.version, self},
	}, components, []dependency{of}}
	text, err := json.MarshalIndent(bill, "", "  ")
	if err != nil {
		return err
	}
	return r.write("limitkv_"+r.version+"_sbom.cdx.json", append(text, '\n'))
}
