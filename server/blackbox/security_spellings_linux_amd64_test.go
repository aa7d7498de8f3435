package blackbox

import (
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestSEC09DeviceSpellings: UNC and device spellings are refused by their text, by every tool that takes a path: none gets
// into a system call, and no socket is opened, so that no server is asked for the name of the host.
func TestSEC09DeviceSpellings(t *testing.T) {
	t.Parallel()
	o, p, s := outsiderOverStdio(t, freely)
	defer p.kill(s)
	o.works() // whatever is done once has been done
	const host = "filer77"
	var mu sync.Mutex
	var bad []string
	seen, carried := 0, 0
	tr := p.trace(s)
	var about []string
	for name, c := range traceable {
		if strings.Trim(c.args, "f-") != "" || c.args == "" {
			about = append(about, name)
		}
	}
	tr.watch(strings.Join(about, ","), func(n int, c traced) syscall.Errno {
		mu.Lock()
		defer mu.Unlock()
		switch seen = n; {
		case strings.Contains(c.path, host+"-control"):
			carried++
		case strings.Contains(c.path, host), traceable[c.name].args == "":
			bad = append(bad, c.String())
		}
		return 0
	})
	calls := 0
	for _, spelling := range deviceSpellings {
		for _, w := range ways() {
			if !slices.Contains([]wayKind{readsPath, writesPath, inJournal}, w.kind) {
				continue
			}
			path := spelling
			if w.param == "notebook_path" {
				path = strings.TrimSuffix(path, ".txt") + ".ipynb"
			}
			if code, text := o.call(w.tool, w.args(path)); code != pathRefused {
				t.Errorf("%s %s %q: %.300q", w.tool, w.param, path, text)
			}
			calls++
		}
	}
	mu.Lock()
	refused := seen
	mu.Unlock()
	o.call("read_file", map[string]any{"file_path": host + "-control"})
	tr.watch("", nil)
	mu.Lock()
	defer mu.Unlock()
	for _, c := range bad {
		t.Errorf("a refused path went into %s", c)
	}
	if carried == 0 {
		t.Error("a path that is not refused was in no system call: nothing was watched")
	}
	if len(deviceSpellings) < 20 {
		t.Errorf("%d spellings are too few", len(deviceSpellings))
	}
	t.Logf("%d spellings, %d calls: all refused, and none in a system call or a socket (%d were watched)", len(deviceSpellings), calls, refused)
}
