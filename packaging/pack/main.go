// Command pack makes what goreleaser does not make of its binaries: bundles for Claude Desktop (MCPB), packages for
// npm, recipes for Homebrew, Scoop and Nix, and the entry of the MCP registry. It is no part of the released binary,
// and uses no network.
//
//	go run ./packaging/pack -repository https://github.com/OWNER/codehand dist
//	go run ./packaging/pack -provenance -repository https://github.com/OWNER/codehand dist
//	go run ./packaging/pack -man cmd/codehand/testdata/help -version 1.2.3 packaging/out/man
//
// The third makes pages of the manual, before goreleaser packs them. The first reads dist/metadata.json and
// dist/artifacts.json, and writes beside them; the second comes last, and reads dist/checksums.txt. Equal binaries give
// equal bytes: files in packages have the time of the commit.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	repository := flag.String("repository", "https://github.com/OWNER/codehand", "address of the releases")
	version := flag.String("version", "", "version that pages of the manual show")
	help := flag.String("man", "", "make pages of the manual from the texts of help in this directory")
	last := flag.Bool("provenance", false, "say of the files in checksums.txt what they were made from")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: pack [-provenance] [-repository URL] DIST, or pack -man HELP -version V DIR")
		os.Exit(2)
	}
	var err error
	switch {
	case *help != "":
		err = pages(*help, flag.Arg(0), *version)
	case *last:
		err = provenance(flag.Arg(0), *repository)
	default:
		err = pack(flag.Arg(0), *repository)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

// A release is what packages are made of.
type release struct {
	dir        string // where they are written
	repository string // as https://github.com/OWNER/codehand
	version    string // without a v before it
	time       time.Time
	binaries   []binary
}

// A binary is the program for one platform. os and arch are Go's names; arch "all" runs on each Mac.
type binary struct {
	os, arch string
	content  []byte
}

func pack(dist, repository string) error {
	r, err := read(dist)
	if err != nil {
		return err
	}
	r.repository = repository
	bundles, err := r.bundles()
	if err != nil {
		return err
	}
	if err := r.packages(); err != nil {
		return err
	}
	if err := r.recipes(); err != nil {
		return err
	}
	return r.entry(bundles)
}

// read reads what goreleaser left in its directory.
func read(dist string) (release, error) {
	r := release{dir: dist}
	var meta struct {
		Version string    `json:"version"`
		Date    time.Time `json:"date"`
	}
	var artifacts []struct {
		Type, Path, Goos, Goarch string
	}
	for name, to := range map[string]any{"metadata.json": &meta, "artifacts.json": &artifacts} {
		b, err := os.ReadFile(filepath.Join(dist, name))
		if err != nil {
			return r, err
		}
		if err := json.Unmarshal(b, to); err != nil {
			return r, fmt.Errorf("%s: %w", name, err)
		}
	}
	r.version = meta.Version
	for _, a := range artifacts {
		if a.Type != "Binary" && a.Type != "Universal Binary" {
			continue
		}
		path := a.Path // as seen from where goreleaser ran, the parent of dist
		if !filepath.IsAbs(path) {
			path = filepath.Join(dist, "..", path)
		}
		info, err := os.Stat(path)
		if err != nil {
			return r, err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return r, err
		}
		// mod_timestamp of .goreleaser.yaml sets it; a zip has no odd seconds.
		r.time = info.ModTime().UTC().Truncate(2 * time.Second)
		r.binaries = append(r.binaries, binary{os: a.Goos, arch: a.Goarch, content: content})
	}
	if len(r.binaries) == 0 {
		return r, fmt.Errorf("%s names no binary", filepath.Join(dist, "artifacts.json"))
	}
	return r, nil
}

// program is the name of the program's file in a package.
func (b binary) program() string {
	if b.os == "windows" {
		return "codehand.exe"
	}
	return "codehand"
}

// node are the names that Node has for the platform: process.platform and process.arch.
func (b binary) node() (platform, arch string) {
	platform, arch = b.os, b.arch
	if platform == "windows" {
		platform = "win32"
	}
	if arch == "amd64" {
		arch = "x64"
	}
	return platform, arch
}
