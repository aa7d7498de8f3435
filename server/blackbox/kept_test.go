package blackbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// TestResultsLimit: ten commands left 641 MB in 7 s. What a session keeps stays within its share at each answer, whose own
// whole is there to be read, and an ended job leaves one file.
func TestResultsLimit(t *testing.T) {
	t.Parallel()
	const share = 1 << 20 // a quarter
	work := leaktest.Dir(t)
	p := replaytest.Spawn(t, replaytest.Program(t), work, "claude-code", false, map[string]string{"results.max_bytes": "4MiB"})
	kept := func() (sum int64, names []string) {
		err := filepath.WalkDir(filepath.Join(p.State, "sessions"), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				if dir := filepath.Base(filepath.Dir(path)); dir == "tool-results" || dir == "jobs" {
					info, err := d.Info()
					must(t, err)
					sum, names = sum+info.Size(), append(names, d.Name())
				}
			}
			return err
		})
		must(t, err)
		return sum, names
	}
	whole := regexp.MustCompile(`Full output: (.+?) Read it with`)
	for i := range 10 {
		text := p.Must(t, "run_shell", fmt.Sprintf(`{"command":"yes 'line %d' | head -c 300000"}`, i))
		path := whole.FindStringSubmatch(text)
		if path == nil {
			t.Fatalf("no whole output is named: %.200s", text)
		}
		if data, err := os.ReadFile(path[1]); err != nil || len(data) != 300_000 {
			t.Errorf("the whole of answer %d: %d bytes, %v", i, len(data), err)
		}
		if sum, names := kept(); sum > share {
			t.Errorf("after answer %d the session keeps %d bytes: %q", i, sum, names)
		}
	}
	job := regexp.MustCompile(`job_[a-z2-7]{12}`).FindString(p.Must(t, "run_shell", `{"command":"yes | head -c 300000","run_in_background":true}`))
	replaytest.Until(t, "the job has one file", func() bool {
		_, names := kept()
		files := 0
		for _, name := range names {
			if strings.HasPrefix(name, job) {
				files++
			}
		}
		return job != "" && files == 1
	})
}
