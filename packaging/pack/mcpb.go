package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

//go:embed manifest.json
var manifest []byte

// bundles writes a bundle for each platform and returns their paths. The format has no selector of an architecture, so
// each has one, but that of a Mac, which has both.
func (r release) bundles() (paths []string, err error) {
	for _, b := range r.binaries {
		if b.os == "darwin" && b.arch != "all" {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal(manifest, &m); err != nil {
			return nil, fmt.Errorf("manifest.json: %w", err)
		}
		platform, arch := b.node()
		m["version"] = r.version
		m["repository"] = map[string]string{"type": "git", "url": r.repository}
		m["compatibility"] = map[string]any{"platforms": []string{platform}}
		server := m["server"].(map[string]any)
		server["entry_point"] = "server/" + b.program()
		server["mcp_config"].(map[string]any)["command"] = "${__dirname}/server/" + b.program()
		text, err := json.MarshalIndent(m, "", "  ")
		if err != nil {
			return nil, err
		}
		zipped, err := r.zip([]file{{"manifest.json", text, 0o644}, {"server/" + b.program(), b.content, 0o755}})
		if err != nil {
			return nil, err
		}
		// The registry takes addresses only that have mcp in them, which the ending has.
		path := filepath.Join(r.dir, fmt.Sprintf("codehand_%s_%s_%s.mcpb", r.version, platform, arch))
		if err := os.WriteFile(path, zipped, 0o644); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// A file is one in a package.
type file struct {
	name    string
	content []byte
	mode    os.FileMode
}

func (r release) zip(files []file) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(to io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(to, flate.BestCompression)
	})
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: r.time}
		h.SetMode(f.mode)
		to, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
