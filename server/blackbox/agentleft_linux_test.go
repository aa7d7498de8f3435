package blackbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
	"codehand/tools/agent/loop"
	"codehand/tools/agent/modelstest"
)

// A footprint is what a process holds.
type footprint struct{ kib, descriptors, goroutines int }

func (f footprint) String() string {
	return fmt.Sprintf("%d KiB, %d descriptors, %d goroutines", f.kib, f.descriptors, f.goroutines)
}

// footprintAfter runs so many sub-agents in one process of the program and says what it holds then. The process ends by
// SIGQUIT, at which it lists its goroutines.
func footprintAfter(t *testing.T, agents int) (f footprint) {
	t.Helper()
	const each = 5 // of one call
	m := modelstest.Start(t, func(r modelstest.Request) modelstest.Turn {
		turn := modelstest.Turn{Text: "It is done.", Tokens: loop.Tokens{Input: 1000, Output: 10}}
		if !strings.Contains(string(r.Body), "a line of a file") {
			turn = modelstest.Turn{Calls: []modelstest.Call{
				{ID: "1", Name: "read_file", Arguments: `{"file_path":"a.txt"}`}, {ID: "2", Name: "grep_search", Arguments: `{"pattern":"line"}`},
			}}
		}
		return turn
	})
	p := newAgentProgram(t, "--agent-api-provider=anthropic", "--agent-api-model=m", "--agent-api-base-url="+m.URL)
	replaytest.WriteFile(t, filepath.Join(p.work, "a.txt"), []byte(strings.Repeat("a line of a file\n", 100)))
	s := p.start("GOGC=100") // what it holds, and not how much garbage it may gather: the program lets it grow fivefold
	for range 300 {          // so that garbage is collected before the first sub-agent, too
		asks(t, s, "grep_search", map[string]any{"pattern": "line", "output_mode": "content", "head_limit": 0})
	}
	var tasks []any
	for range each {
		tasks = append(tasks, map[string]any{"prompt": "Read a.txt.", "subagent_type": "explore"})
	}
	for range agents / each {
		if text := asks(t, s, "agent", map[string]any{"tasks": tasks}); strings.Count(text, ": done\nIt is done.\n[agent ") != each {
			t.Fatal(text)
		}
	}
	pid := s.Cmd.Process.Pid
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	for l := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(l, "VmRSS:"); ok {
			f.kib, err = strconv.Atoi(strings.Fields(rest)[0])
			must(t, err)
		}
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	must(t, err)
	f.descriptors = len(open)
	must(t, s.Cmd.Process.Signal(syscall.SIGQUIT))
	for range s.Lines {
	}
	_ = s.Cmd.Wait()
	f.goroutines = strings.Count("\n"+s.Stderr.String(), "\ngoroutine ")
	return f
}

// TestAgentsGiveBack: 100 sub-agents in one process leave at most 16 MiB, and no goroutine and no descriptor, beyond what
// 10 leave.
func TestAgentsGiveBack(t *testing.T) {
	t.Parallel()
	leaktest.OnlyLong(t, "runs 110 sub-agents")
	few, many := footprintAfter(t, 10), footprintAfter(t, 110)
	t.Logf("after 10: %v; after 110: %v", few, many)
	if few.kib == 0 || few.goroutines < 2 || many.kib-few.kib > 16<<10 || many.descriptors > few.descriptors+2 || many.goroutines > few.goroutines+5 {
		t.Errorf("after 10: %v; after 110: %v", few, many)
	}
}
