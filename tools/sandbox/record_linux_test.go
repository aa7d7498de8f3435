package sandbox

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fullReport is that of a machine that confines commands as far as is possible.
var fullReport = Report{Level: LevelFull, Gaps: []string{"memory"}, Ungrouped: "no tree"}

// A record was planted, or was made by another program or before the machine was started anew.
func TestRecallOnlyOurOwn(t *testing.T) {
	t.Parallel()
	edit := func(change func(map[string]any)) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			t.Helper()
			var all map[string]any
			text, err := os.ReadFile(path)
			if err == nil {
				err = json.Unmarshal(text, &all)
			}
			if err != nil {
				t.Fatal(err)
			}
			change(all)
			if text, err = json.Marshal(all); err == nil {
				err = os.WriteFile(path, text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	of := func(field string) func(t *testing.T, path string) {
		return edit(func(all map[string]any) { all["machine"].(map[string]any)[field] = "another" })
	}
	do := func(change func(path string) error) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			t.Helper()
			if err := change(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, plant := range map[string]func(t *testing.T, path string){
		"boot": of("boot"), "kernel": of("kernel"), "settings": of("settings"), "program": of("program"),
		"user": of("user"), "label": of("label"), "namespaces": of("namespaces"), "state": of("state"),
		"groups":         edit(func(all map[string]any) { m := all["machine"].(map[string]any); m["grouped"] = m["grouped"] == false }),
		"no level":       edit(func(all map[string]any) { all["level"] = 0 }),
		"level 1":        edit(func(all map[string]any) { all["level"] = 1 }),
		"level 4":        edit(func(all map[string]any) { all["level"] = 4 }),
		"level 2 no why": edit(func(all map[string]any) { all["level"] = 2 }),
		"others write":   do(func(path string) error { return os.Chmod(path, 0o622) }),
		"directory":      do(func(path string) error { return os.Chmod(filepath.Dir(path), 0o777) }),
		"not JSON":       do(func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) }),
		"link": do(func(path string) error {
			if err := os.Rename(path, path+"2"); err != nil {
				return err
			}
			return os.Symlink(recordName+"2", path)
		}),
		"another owner": func(t *testing.T, path string) {
			t.Helper()
			if os.Geteuid() != 0 {
				t.Skip("only root can give a file away")
			}
			if err := os.Chown(path, 65534, -1); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := t.TempDir()
			if err := os.Chmod(state, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := fullReport.Keep(state); err != nil {
				t.Fatal(err)
			}
			if r, err := Recall(state); err != nil || !r.Same(fullReport) {
				t.Fatalf("the record itself: %+v, %v", r, err)
			}
			plant(t, filepath.Join(state, recordName))
			if r, err := Recall(state); err == nil {
				t.Errorf("used: %+v", r)
			}
		})
	}
}

// Keep of a level that Start would not insist on forgets what was there.
func TestKeep(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	why := &Failure{Level: LevelFull, Probe: "start in namespaces", Remedy: "none"}
	second := Report{Level: LevelKernel, Gaps: []string{"hidden-paths"}, Failed: why}
	for _, r := range []Report{fullReport, second} {
		if err := r.Keep(state); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(state, recordName))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		if got, err := Recall(state); err != nil || !got.Same(r) {
			t.Errorf("kept %+v, got %+v, %v", r, got, err)
		}
	}
	busy := Report{Level: LevelLimits, Failed: &Failure{Passing: true}}
	for _, r := range []Report{{Level: LevelLimits, Failed: why}, busy} {
		if err := second.Keep(state); err != nil {
			t.Fatal(err)
		}
		if err := r.Keep(state); err != nil {
			t.Fatal(err)
		}
		if _, err := Recall(state); !os.IsNotExist(err) {
			t.Errorf("after %+v: %v", r, err)
		}
	}
	if left, err := os.ReadDir(state); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := fullReport.Keep(filepath.Join(state, "none")); err == nil || strings.Contains(err.Error(), "JSON") {
		t.Errorf("without a directory: %v", err)
	}
}

// BenchmarkRecall is what a start with a record waits for instead of BenchmarkProbe.
func BenchmarkRecall(b *testing.B) {
	state := b.TempDir()
	if err := fullReport.Keep(state); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Recall(state); err != nil {
			b.Fatal(err)
		}
	}
}
