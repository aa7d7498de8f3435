//go:build linux

package blackbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"codehand/server/replaytest"
)

// BenchmarkTools calls each tool of everyday work with the built program over stdio, in a repository as large as Go's own
// source: the time that 95 of 100 calls take, the processor time of a call with the commands that it started, what it
// writes, and the most memory that the program had. What pages and models take, the network decides.
func BenchmarkTools(b *testing.B) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	must(b, err)
	src := filepath.Join(strings.TrimSpace(string(goroot)), "src")
	var edits []string
	for i := range 5 {
		edits = append(edits, fmt.Sprintf(`{"file_path":"five%d","old_string":"OLD","new_string":"NEW"}`, i))
	}
	five := `{"edits":[` + strings.Join(edits, ",") + `]}`
	for _, t := range []struct{ tool, input, want string }{
		{"read_file", `{"file_path":"big","limit":COUNT}`, "a line of text"},
		{"write_file", `{"file_path":"new/COUNT","content":"one\ntwo\n"}`, "Created "},
		{"edit_file", `{"file_path":"big","old_string":"OLD","new_string":"NEW"}`, "Edited "},
		{"multi_edit", five, "Edited "},
		{"list_files", `{"path":"SRC","pattern":"**/*_test.go"}`, "_test.go"},
		{"grep_search", `{"path":"SRC","pattern":"func \\w+COUNT?\\("}`, ".go"},
		{"run_shell", `{"command":"true COUNT"}`, "no output"},
		{"run_readonly", `{"command":"true COUNT"}`, "no output"},
	} {
		b.Run(t.tool, func(b *testing.B) {
			dir := b.TempDir()
			for _, name := range []string{"big", "five0", "five1", "five2", "five3", "five4"} {
				writeText(b, filepath.Join(dir, name), 8000)
			}
			c, _ := launch(b, replaytest.Program(b), "stdio", dir, src)
			defer c.stop()
			words, n := []string{"is here", "is HERE"}, 0
			call := func() time.Duration {
				n++
				input := strings.NewReplacer("COUNT", strconv.Itoa(n), "OLD", words[0], "NEW", words[1], "SRC", src).Replace(t.input)
				slices.Reverse(words)
				return timed(func() { c.tool(b, t.tool, input, t.want) })
			}
			for _, name := range []string{"big", "five0", "five1", "five2", "five3", "five4"} {
				c.tool(b, "read_file", fmt.Sprintf(`{"file_path":%q}`, name), "a line of text")
			}
			call() // the first of a session learns what the others know
			cpu, written := c.used(b)
			var took []time.Duration
			for b.Loop() {
				took = append(took, call())
			}
			cpuNow, writtenNow := c.used(b)
			calls := float64(len(took))
			slices.Sort(took)
			b.ReportMetric(took[len(took)*95/100].Seconds()*1e3, t.tool+"-p95-ms")
			b.ReportMetric((cpuNow-cpu)/calls, t.tool+"-cpu-ms")
			b.ReportMetric((writtenNow-written)/calls, t.tool+"-written-KiB")
			b.ReportMetric(c.peak(b), t.tool+"-MiB")
			b.ReportMetric(0, "ns/op") // of the loop
		})
	}
}

// used is the processor time in ms that the process and the commands that have ended took, and the KiB that they caused
// to be written to a disk.
func (c *contender) used(b *testing.B) (cpu, written float64) {
	b.Helper()
	of := fmt.Sprintf("/proc/%d/", c.cmd.Process.Pid)
	stat, err := os.ReadFile(of + "stat")
	must(b, err)
	_, rest, _ := strings.Cut(string(stat), ") ")
	for _, ticks := range strings.Fields(rest)[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.ParseFloat(ticks, 64)
		must(b, err)
		cpu += n * 10 // USER_HZ is 100 on all that Go runs on
	}
	io, err := os.ReadFile(of + "io")
	must(b, err)
	_, rest, _ = strings.Cut(string(io), "\nwrite_bytes: ")
	n, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	must(b, err)
	return cpu, n / 1024
}
