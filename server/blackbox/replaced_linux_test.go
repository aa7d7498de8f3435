package blackbox

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codehand/server/replaytest"
)

// While a job runs, a person's git and editor replace files that it must not change. With that
// the kernel takes away what kept it from them, and it is kept from them again. Their files stay as they wrote them, and
// the end of the job says which they are.
func TestReplacedBesideAJob(t *testing.T) {
	t.Parallel()
	p := gitWork(t)
	for file, text := range map[string]string{
		".mcp.json": "{\"a\": 1}\n", ".envrc": "old\n", "sub/.npmrc": "old\n", "new-envrc": "person\n",
	} {
		p.lay("a/"+file, text)
	}
	for _, pipe := range []string{"go", "ready"} {
		must(t, syscall.Mkfifo(filepath.Join(p.root, pipe), 0o600))
	}
	// It waits until each is kept from it, and would wait for ever if one stayed free.
	p.lay("a/j.sh", `exec 2>/dev/null
echo >ready; read <go
for f in .mcp.json .envrc sub/.npmrc; do
	while touch -c $f; do :; done
	echo evil >>$f; rm -f $f; mv -f j.sh $f
done
until [ -h .git/config ]; do :; done
git config alias.evil '!evil'; rm -f .git/config; mkdir -p .git/hooks; echo done
`)
	said := p.Must(t, "run_shell", replaytest.AsJSON(t, "command", "bash j.sh", "run_in_background", true))
	_, err := os.ReadFile(filepath.Join(p.root, "ready"))
	must(t, err)

	must(t, os.Rename(filepath.Join(p.root, "new-envrc"), filepath.Join(p.root, ".envrc")))
	must(t, os.RemoveAll(filepath.Join(p.root, "sub")))
	p.lay("a/sub/.npmrc", "person\n")
	p.outside(".", "config", "user.name", "Person")
	p.lay("a/new-mcp", "{\"a\": 2}\n")
	must(t, os.Rename(filepath.Join(p.root, "new-mcp"), filepath.Join(p.root, ".mcp.json")))
	must(t, os.WriteFile(filepath.Join(p.root, "go"), []byte("\n"), 0o600))

	out := p.Must(t, "job_output", replaytest.AsJSON(t, "job_id", replaytest.JobID.FindString(said), "block", true))
	for _, told := range []string{
		"done", "[made or replaced while this job ran, which could write it: .envrc, .mcp.json, sub/.npmrc. ",
		"[.git/config: took out alias.evil; ",
	} {
		if !strings.Contains(out, told) {
			t.Errorf("%q is not told: %s", told, out)
		}
	}
	for file, want := range map[string]string{".envrc": "person\n", ".mcp.json": "{\"a\": 2}\n", "sub/.npmrc": "person\n"} {
		if text, err := os.ReadFile(filepath.Join(p.root, file)); err != nil || string(text) != want {
			t.Errorf("%s has %q, want %q, %v", file, text, want, err)
		}
	}
	if config := p.config("."); !strings.Contains(config, "user.name=Person") || strings.Contains(config, "evil") {
		t.Errorf("the configuration is %s", config)
	}
}
