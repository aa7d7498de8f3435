package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
)

//go:embed codehand.js
var launcher []byte

// packages writes the packages of npm into the directory npm: one with a script, and one for each platform with the
// binary, of which npm installs the one that fits. None has a script that runs when it is installed.
func (r release) packages() error {
	dir := filepath.Join(r.dir, "npm")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	optional := map[string]string{}
	for _, b := range r.binaries {
		platform, arch := b.node()
		if arch == "all" {
			continue
		}
		name := "codehand-" + platform + "-" + arch
		optional[name] = r.version
		about := r.about(name, "codehand for "+platform+" on "+arch)
		about["os"], about["cpu"] = []string{platform}, []string{arch}
		if err := r.tgz(dir, name, about, file{"bin/" + b.program(), b.content, 0o755}); err != nil {
			return err
		}
	}
	about := r.about("codehand", "The tools of a coding agent for any MCP client: read, edit, search, run, with undo")
	about["bin"] = map[string]string{"codehand": "bin/codehand.js"}
	about["optionalDependencies"] = optional
	about["engines"] = map[string]string{"node": ">=16"}
	about["mcpName"] = r.registered() // the registry looks for it
	return r.tgz(dir, "codehand", about, file{"bin/codehand.js", launcher, 0o755})
}

// about is what all package.json have.
func (r release) about(name, description string) map[string]any {
	return map[string]any{"name": name, "version": r.version, "description": description, "license": "MIT",
		"repository": map[string]string{"type": "git", "url": "git+" + r.repository + ".git"},
		"homepage":   r.repository, "files": []string{"bin"}}
}

// tgz writes a package as npm pack would.
func (r release) tgz(dir, name string, about map[string]any, f file) error {
	text, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return err
	}
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(zipped)
	for _, f := range []file{{"package.json", append(text, '\n'), 0o644}, f} {
		h := &tar.Header{Name: "package/" + f.name, Mode: int64(f.mode), Size: int64(len(f.content)), ModTime: r.time}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(f.content); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := zipped.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+"-"+r.version+".tgz"), out.Bytes(), 0o644)
}
