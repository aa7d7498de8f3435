package permission

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"codehand/tools/bash"
)

var writeBefore = flag.Bool("before", false, "write testdata/before.txt anew: only from a tree whose verdicts are wanted")

// Rules about paths made commands a question for people who have no such rule. testdata/before.txt holds what was
// decided about the committed corpora without a rule about paths, before rules saw through variables, links and pipes:
// a line per command, its sum, its class and a letter per mode. At most 2 % may differ. The file is not written anew for
// a change of what rules about paths see. A command that it does not know is not compared, nor one whose class is
// another now: which forms only read, and what is dangerous, have corpora of their own.
func TestVerdictsWithoutPathRules(t *testing.T) {
	t.Parallel()
	now := map[string]string{}
	var order []string
	for _, name := range [...]string{"shell-commands", "shell-readonly", "shell-dangerous"} {
		for _, command := range corpusCommands(t, name) {
			key := sumOf(command)
			if now[key] == "" {
				order = append(order, key+" "+command)
			}
			now[key] = verdictsOf(t, command)
		}
	}
	const golden = "testdata/before.txt"
	if *writeBefore {
		var b strings.Builder
		for _, line := range order {
			key, _, _ := strings.Cut(line, " ")
			fmt.Fprintf(&b, "%s %s\n", key, now[key])
		}
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]string{}
	for line := range strings.Lines(string(data)) {
		key, verdicts, _ := strings.Cut(strings.TrimSpace(line), " ")
		before[key] = verdicts
	}
	compared, changed := 0, 0
	for _, line := range order {
		key, command, _ := strings.Cut(line, " ")
		class, _, _ := strings.Cut(before[key], " ")
		if before[key] == "" || !strings.HasPrefix(now[key], class+" ") {
			continue
		}
		if compared++; before[key] != now[key] {
			changed++
			t.Logf("%s -> %s: %q", before[key], now[key], command)
		}
	}
	if compared < 1000 || changed*50 > compared {
		t.Errorf("%d of %d verdicts changed, want 2 %% at most, of 1000 at least", changed, compared)
	}
	t.Logf("%d of %d verdicts changed", changed, compared)
}

// corpusCommands are the commands of a file of the corpus.
func corpusCommands(t *testing.T, name string) (commands []string) {
	t.Helper()
	data, err := os.ReadFile("../../testdata/corpus/" + name + ".tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.SplitN(line, "\t", 3)
		var command string
		if len(fields) == 3 && json.Unmarshal([]byte(fields[1]), &command) == nil {
			commands = append(commands, command)
		}
	}
	return commands
}

func sumOf(command string) string {
	sum := sha256.Sum256([]byte(command))
	return hex.EncodeToString(sum[:8])
}

// verdictsOf are the class of a command, and what is decided about it without a rule about paths: in modes default,
// acceptEdits and bypassPermissions, and where everything that a star may cover is allowed.
func verdictsOf(t *testing.T, command string) string {
	t.Helper()
	w := newWorld()
	a := bash.Analyze(command, w.inside)
	letters := a.Class.String() + " "
	for _, mode := range [...]Mode{Default, AcceptEdits, Bypass, Default} {
		if w.mode = mode; len(letters) == len(a.Class.String())+4 {
			w.options.Allow = []Rule{{Text: "Bash(*)", Origin: "config.toml:7", Dir: "/conf"}}
		}
		p, err := New(w.options)
		if err != nil {
			t.Fatal(err)
		}
		r := Request{Tool: "run_shell", Aliases: []string{"Bash"}, Family: familyOf("run_shell"), Own: Allow, Mode: mode,
			Cwd: w.cwd, Now: noon, ReadOnly: a.Class == bash.ReadOnly}
		r.Targets = append(w.files(a), Target{Kind: Command, Value: command, Analysis: &a})
		for i := range r.Targets {
			w.resolve(&r.Targets[i])
		}
		letters += letter(p.At(w.roots, w.cwd).Decide(r))
	}
	return letters
}
