package sandbox

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
)

// childMode makes the test binary do something else in a process of its own.
const childMode = "SANDBOX_TEST_CHILD"

func TestMain(m *testing.M) {
	escapeChild()
	if mode := os.Getenv(childMode); mode != "" {
		os.Exit(child(mode))
	}
	leaktest.Main(m)
}

// children reads /proc in another way than the package does.
func children() []string {
	var left []string
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		text, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		left = append(left, strings.Fields(string(text))...)
	}
	return left
}

// hang is the time after which a condition that does not come true is a failure.
const hang = 60 * time.Second

// reached polls until the condition holds; false: it never did.
func reached(condition func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(hang)
	for !condition() {
		select {
		case <-late:
			return false
		case <-tick.C:
		}
	}
	return true
}

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	if !reached(condition) {
		t.Fatalf("still not true after %v: %s", hang, what)
	}
}

// alive returns the processes whose command line holds word, as "pid: command line".
func alive(t *testing.T, word string) []string {
	t.Helper()
	names, err := os.ReadDir("/proc")
	if err != nil {
		t.Skip("needs /proc to see what survives:", err)
	}
	var list []string
	for _, name := range names {
		if _, err := strconv.Atoi(name.Name()); err != nil {
			continue
		}
		text, _ := os.ReadFile("/proc/" + name.Name() + "/cmdline")
		if line := strings.ReplaceAll(string(text), "\x00", " "); strings.Contains(line, word) {
			list = append(list, name.Name()+": "+line)
		}
	}
	return list
}
