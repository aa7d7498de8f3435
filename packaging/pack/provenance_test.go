package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestProvenance: each file has its sum, and the statement names the commit.
func TestProvenance(t *testing.T) {
	dir := t.TempDir()
	commit, sum := strings.Repeat("c", 40), strings.Repeat("a", 64)
	lay(t, filepath.Join(dir, "metadata.json"), `{"version":"1.2.3","tag":"v1.2.3","commit":"`+commit+`"}`, 0o644)
	lay(t, filepath.Join(dir, "checksums.txt"), sum+"  a.tar.gz\n"+sum+"  npm/b c.tgz\n", 0o644)
	if err := provenance(dir, repository); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "provenance.intoto.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Subject []struct {
			Name   string
			Digest struct{ Sha256 string }
		}
		Predicate struct {
			BuildDefinition struct {
				ResolvedDependencies []struct {
					URI    string
					Digest struct{ GitCommit string }
				}
			}
		}
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	from := got.Predicate.BuildDefinition.ResolvedDependencies
	if len(got.Subject) != 2 || got.Subject[1].Name != "npm/b c.tgz" || got.Subject[1].Digest.Sha256 != sum ||
		len(from) != 1 || from[0].Digest.GitCommit != commit || from[0].URI != "git+"+repository {
		t.Errorf("statement %s", b)
	}
	for name, text := range map[string]string{"checksums.txt": "nonsense\n", "metadata.json": `{"version":"1.2.3"}`} {
		lay(t, filepath.Join(dir, name), text, 0o644)
		if err := provenance(dir, repository); err == nil {
			t.Errorf("%s with %q is no error", name, text)
		}
	}
}
