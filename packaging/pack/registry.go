package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// schema is what describes an entry of the registry.
const schema = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"

// registered is the name in the registry, which belongs to whom the repository belongs: io.github.OWNER/codehand.
func (r release) registered() string {
	u, err := url.Parse(r.repository)
	if err != nil || u.Host != "github.com" {
		return ""
	}
	owner, _, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	return "io.github." + owner + "/codehand"
}

// entry writes server.json, which mcp-publisher sends to the registry.
func (r release) entry(bundles []string) error {
	type m = map[string]any
	roots := m{"type": "positional", "valueHint": "directory", "isRequired": true, "isRepeated": true,
		"format": "filepath", "description": "A directory to work in"}
	stdio := m{"type": "positional", "value": "stdio"}
	packages := []m{{"registryType": "npm", "identifier": "codehand", "version": r.version,
		"transport": m{"type": "stdio"}, "packageArguments": []m{stdio, roots}}}
	for _, path := range bundles {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		packages = append(packages, m{"registryType": "mcpb", "fileSha256": hex.EncodeToString(sum[:]),
			"identifier": r.repository + "/releases/download/v" + r.version + "/" + filepath.Base(path),
			"version":    r.version, "transport": m{"type": "stdio"}})
	}
	text, err := json.MarshalIndent(m{"$schema": schema, "name": r.registered(), "title": "codehand",
		"version":     r.version,
		"description": "The tools of a coding agent: read, edit, search and run in your directories, with undo",
		"repository":  m{"url": r.repository, "source": "github"}, "packages": packages}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dir, "server.json"), append(text, '\n'), 0o644)
}
