package folding

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write golden files")

// What programs print is in testdata, and beside it what is shown of that.
func TestOutputs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 6 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, ok := Fold(string(text))
		if !ok {
			t.Errorf("%s: nothing is left out", file)
			continue
		}
		kept := strings.Count(f.Text, "\n")
		if kept+f.Left != f.Lines || strings.Count(string(text), "\n") != f.Lines {
			t.Errorf("%s: %d lines and %d left out of %d", file, kept, f.Left, f.Lines)
		}
		got, golden := f.What+"\n"+f.Text, strings.TrimSuffix(file, ".txt")+".golden"
		want, err := os.ReadFile(golden)
		if *update && os.Getenv("CI") == "" {
			err = os.WriteFile(golden, []byte(got), 0o644)
			want = []byte(got)
		}
		if err != nil || got != string(want) {
			t.Errorf("%s: %v, got\n%s", golden, err, got)
		}
	}
}

// Lines of a test that failed, was skipped or never ended stay, and so does whatever is of no test.
func TestOnlyPassed(t *testing.T) {
	t.Parallel()
	run := func(name, end string, logs ...string) string {
		text := "=== RUN   " + name + "\n"
		for _, l := range logs {
			text += "    a_test.go:1: " + l + "\n"
		}
		if end != "" {
			text += "--- " + end + ": " + name + " (0.00s)\n"
		}
		return text
	}
	text := "building\n"
	for range 30 {
		text += run("TestGood", "PASS", "all is well")
	}
	keep := run("TestBad", "FAIL", "got 1") + run("TestLater", "SKIP", "not now") + run("TestLoud", "PASS", "a warning") +
		"of no test\nPASS\nof nobody\n" + run("TestHangs", "", "waits")
	f, ok := Fold(text + keep)
	want := "building\n" + run("TestBad", "FAIL", "got 1") + run("TestLater", "SKIP", "not now") + "    a_test.go:1: a warning\nof no test\nPASS\nof nobody\n" +
		run("TestHangs", "", "waits")
	if !ok || f.Text != want || f.What != "92 lines of tests that passed" {
		t.Errorf("%t, %s:\n%s\nwant\n%s", ok, f.What, f.Text, want)
	}
	if _, ok := Fold(strings.Repeat(run("TestGood", "PASS"), 19)); ok {
		t.Error("38 lines were left out")
	}
	if _, ok := Fold(strings.Repeat("ok  \tp\t0.1s\n", 50) + strings.Repeat("something else\n", 150)); ok {
		t.Error("less than a third was left out")
	}
	again := strings.Repeat(run("TestOften", "PASS", "x"), 30) + run("TestOften", "FAIL", "y")
	if f, ok := Fold(again); ok {
		t.Errorf("a test that failed once passed before, and lost lines:\n%s", f.Text)
	}
}

// No line that may tell of a failure is lost, the others keep their order, and counts are right.
func FuzzFold(f *testing.F) {
	for _, name := range []string{"go-test-v-fail", "cargo-test-fail", "node-spec-fail", "pytest-v-fail"} {
		text, err := os.ReadFile("testdata/" + name + ".txt")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		folded, ok := Fold(text)
		if !ok {
			return
		}
		shown := strings.Split(strings.TrimSuffix(folded.Text, "\n"), "\n")
		at, lost := 0, 0
		for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
			if at < len(shown) && shown[at] == line {
				at++
				continue
			}
			lost++
			for _, word := range []string{"error", "fail", "panic", "warn", "FAIL", "Error"} {
				if strings.Contains(line, word) {
					t.Fatalf("lost: %q", line)
				}
			}
		}
		if folded.Text != "" && at != len(shown) || lost < least {
			t.Fatalf("%d of %d lines are shown in order, %d were lost", at, len(shown), lost)
		}
	})
}
