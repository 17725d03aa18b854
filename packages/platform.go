package main

// The supported platforms, and their names in each kind of package.

import (
	"fmt"
	"slices"
	"strings"
)

// platform is an operating system and a processor. The binary links no C library, so one for Linux works with glibc and musl.
type platform struct {
	os, arch string // Go's names
	wheel    string // the tag of a wheel
	npm      string // Node's process.platform and process.arch
	java     string // the folder in the jar, from os.name and os.arch
	deb      string // Debian's architecture, "" if there is no package
}

// platforms lists the platforms. macOS 12 is the oldest that Go supports.
var platforms = []platform{
	{"linux", "amd64", "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64", "linux-x64", "linux-amd64", "amd64"},
	{"linux", "arm64", "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64", "linux-arm64", "linux-arm64", "arm64"},
	{"darwin", "amd64", "macosx_12_0_x86_64", "darwin-x64", "darwin-amd64", ""},
	{"darwin", "arm64", "macosx_12_0_arm64", "darwin-arm64", "darwin-arm64", ""},
	{"windows", "amd64", "win_amd64", "win32-x64", "windows-amd64", ""},
	{"windows", "arm64", "win_arm64", "win32-arm64", "windows-arm64", ""},
}

func (p platform) String() string { return p.os + "/" + p.arch }

// program is the binary's file name.
func (p platform) program() string {
	if p.os == "windows" {
		return "limitkv.exe"
	}
	return "limitkv"
}

// choose returns the platforms of a list, in the order of the table.
func choose(list string) (chosen []platform, err error) {
	if list == "all" {
		return platforms, nil
	}
	names := strings.Split(list, ",")
	for _, p := range platforms {
		if i := slices.Index(names, p.String()); i >= 0 {
			chosen, names = append(chosen, p), slices.Delete(names, i, i+1)
		}
	}
	if len(names) > 0 {
		return nil, fmt.Errorf("%q is none of the platforms %v, or named twice", names[0], platforms)
	}
	return chosen, nil
}
