package running

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/tools/bash"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/workspace"
)

// What it costs to bind a command to the disk, over Go's source tree: twice a call, before a decision and before it runs.
func BenchmarkBind(b *testing.B) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Skip(err)
	}
	src := filepath.Join(strings.TrimSpace(string(root)), "src")
	space, err := workspace.Open([]string{src}, workspace.Options{})
	if err != nil {
		b.Skip(err)
	}
	defer space.Close()
	rules, err := permission.New(permission.Options{})
	if err != nil {
		b.Fatal(err)
	}
	s := &session.State{Space: space, Rules: rules}
	for _, command := range []string{"cat bufio/bufio.go", "grep -rn x .", "grep -Rn x .", "wc -l */*.go"} {
		b.Run(command, func(b *testing.B) {
			proved := bash.Analyze(command, nil)
			for b.Loop() {
				a := proved
				if err := Bind(s, &a, command, true); err != nil || a.Bound == "" {
					b.Fatal(err, a.Why)
				}
			}
		})
	}
	b.Run("analyze", func(b *testing.B) {
		for b.Loop() {
			bash.Analyze("cat bufio/bufio.go", nil)
		}
	})
}
