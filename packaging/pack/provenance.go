package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// provenance writes provenance.intoto.json, a statement of in-toto with a predicate of SLSA 1.0: which files there are,
// by the sums in checksums.txt, and from which commit and by which script they were made. Nobody has signed it; the
// host of a release does, or its owner. It says nothing that differs between two builds of a commit.
func provenance(dist, repository string) error {
	var meta struct{ Version, Tag, Commit string }
	b, err := os.ReadFile(filepath.Join(dist, "metadata.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &meta); err != nil {
		return fmt.Errorf("metadata.json: %w", err)
	}
	if meta.Commit == "" {
		return errors.New("metadata.json names no commit")
	}
	sums, err := os.ReadFile(filepath.Join(dist, "checksums.txt"))
	if err != nil {
		return err
	}
	type m = map[string]any
	var subjects []m
	for line := range strings.Lines(string(sums)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || len(sum) != 64 {
			return fmt.Errorf("checksums.txt: no sum and name: %q", line)
		}
		subjects = append(subjects, m{"name": name, "digest": m{"sha256": sum}})
	}
	if len(subjects) == 0 {
		return errors.New("checksums.txt names no file")
	}
	script := repository + "/blob/" + meta.Commit + "/packaging/release"
	text, err := json.MarshalIndent(m{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects,
		"predicateType": "https://slsa.dev/provenance/v1",
		"predicate": m{
			"buildDefinition": m{
				"buildType":          script,
				"externalParameters": m{"repository": repository, "version": meta.Version},
				"internalParameters": m{"go": runtime.Version()},
				"resolvedDependencies": []m{
					{"uri": "git+" + repository, "digest": m{"gitCommit": meta.Commit}},
				},
			},
			"runDetails": m{"builder": m{"id": script}},
		},
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dist, "provenance.intoto.json"), append(text, '\n'), 0o644)
}
