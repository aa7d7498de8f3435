package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// TestGate: .ci/test fails for what fails, also without naming a test, and calls it a chance if it passes when it runs
// once more. It ends with go test's own closing lines.
func TestGate(t *testing.T) {
	leaktest.OnlyLong(t, "builds the tests of a small module for each case")
	script, err := filepath.Abs("../../.ci/test")
	if err != nil {
		t.Fatal(err)
	}
	const once = `
func once(t *testing.T) bool {
	if _, err := os.Stat("ran"); err == nil {
		return false
	}
	if err := os.WriteFile("ran", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return true
}
`
	const bad = `func TestBad(t *testing.T) { t.Error("bad") }`
	for name, c := range map[string]struct {
		code   string
		fails  bool
		says   string
		silent string
	}{
		"all pass":  {"func TestGood(t *testing.T) {}", false, "", "CHANCE"},
		"a failure": {bad, true, "once more, alone: planted -run ^(TestBad)$", "CHANCE"},
		"a chance": {`func TestLuck(t *testing.T) { if once(t) { t.Error("bad luck") } }`, false,
			"CHANCE: TestLuck in planted", ""},
		"a chance below": {`func TestLuck(t *testing.T) {
	t.Run("part", func(t *testing.T) { if once(t) { t.Error("x") } })
}`, false, "CHANCE: TestLuck in planted", ""},
		"one of both": {`func TestLuck(t *testing.T) { if once(t) { t.Error("x") } }
` + bad, true, "once more, alone: planted -run ^(TestLuck|TestBad)$", "CHANCE"},
		"a panic by chance": {`func TestLuck(t *testing.T) { if once(t) { panic("x") } }`, false,
			"CHANCE: planted", ""},
		"an exit":               {`func TestGone(t *testing.T) { os.Exit(3) }`, true, "once more, alone: planted", "CHANCE"},
		"what does not compile": {`func TestTypo(t *testing.T) { undefined() }`, true, "none runs again", "CHANCE"},
		"too many": {`func TestA(t *testing.T) { t.Fail() }
func TestB(t *testing.T) { t.Fail() }
func TestC(t *testing.T) { t.Fail() }
func TestD(t *testing.T) { t.Fail() }
func TestE(t *testing.T) { t.Fail() }
func TestF(t *testing.T) { t.Fail() }`, true, "none runs again", "CHANCE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			code := "package planted\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n" + once + c.code + "\n"
			for file, text := range map[string]string{"go.mod": "module planted\n\ngo 1.26\n", "x_test.go": code} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), script, "go", "test", "-vet=off", "--", "./...")
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
			out, err := cmd.CombinedOutput()
			text := string(out)
			if (err != nil) != c.fails || !strings.Contains(text, c.says) ||
				c.silent != "" && strings.Contains(text, c.silent) {
				t.Errorf("got %v:\n%s", err, text)
			}
			last := text[strings.LastIndex(strings.TrimSpace(text), "\n")+1:]
			if !c.fails && !strings.HasPrefix(last, "ok  \tplanted") {
				t.Errorf("the last line is %q", last)
			}
		})
	}
}
