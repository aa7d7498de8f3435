package main

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed recipes/codehand.rb
var formula string

//go:embed recipes/codehand.json
var scoop string

//go:embed recipes/flake.nix
var flake string

// recipes writes what other package managers need to fetch an archive: a formula for Homebrew, a manifest for Scoop, a
// flake for Nix. Each names the archives by their address and sum, so it is right for this release alone.
func (r release) recipes() error {
	for name, text := range map[string]string{
		"homebrew/codehand.rb": formula, "scoop/codehand.json": scoop, "nix/flake.nix": flake,
	} {
		made, err := template.New(name).Funcs(template.FuncMap{
			"url": r.archiveURL, "hex": r.archiveHex, "sri": r.archiveSRI,
		}).Parse(text)
		if err != nil {
			return err
		}
		var out strings.Builder
		if err := made.Execute(&out, map[string]string{"Repository": r.repository, "Version": r.version}); err != nil {
			return err
		}
		path := filepath.Join(r.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// archive is the name of the archive for a platform, such as linux_amd64.
func (r release) archive(platform string) string {
	ending := ".tar.gz"
	if strings.HasPrefix(platform, "windows") {
		ending = ".zip"
	}
	return "codehand_" + r.version + "_" + platform + ending
}

func (r release) archiveURL(platform string) string {
	return r.repository + "/releases/download/v" + r.version + "/" + r.archive(platform)
}

func (r release) archiveSum(platform string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(r.dir, r.archive(platform)))
	if err != nil {
		return nil, fmt.Errorf("archive of %s: %w", platform, err)
	}
	sum := sha256.Sum256(b)
	return sum[:], nil
}

func (r release) archiveHex(platform string) (string, error) {
	sum, err := r.archiveSum(platform)
	return hex.EncodeToString(sum), err
}

// archiveSRI is the sum as Nix writes it.
func (r release) archiveSRI(platform string) (string, error) {
	sum, err := r.archiveSum(platform)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum), err
}
