package terminal

import (
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/tools/sandbox"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// What is typed is a command only where a shell reads it: not one that runs a text or a file.
func TestTakesCommands(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"bash": true, "-bash": true, "bash --norc -i": true, "bash --rcfile x": true, "sh -s": true, "zsh -l": true,
		"bash -o vi": true, "fish": true, "ssh host": true, "docker exec -it c sh": true, "tmux": true, "busybox sh": true,
		"/usr/bin/dash": true, "bash -ic x": true, "rbash -": true,
		"bash --noprofile --norc -c -- python3 bash": false, "sh -c x": false, "bash script.sh": false, "bash -e x": false,
		"bash --rcfile x script": false, "python3": false, "vi f": false, "busybox vi f": false, "busybox": false,
		"less": false, "gdb bash": false, "fish --command x": false,
	} {
		words := strings.Fields(line)
		name := words[0][strings.LastIndexByte(words[0], '/')+1:]
		if got := takesCommands(sandbox.Program{Name: strings.TrimPrefix(name, "-"), Words: words}); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
	// A shell under another name, and a name that only sounds like one.
	if !takesCommands(sandbox.Program{Name: "bash", Words: []string{"vi"}}) || !takesCommands(sandbox.Program{Name: "x", Words: []string{"sh"}}) {
		t.Error("one of two names is not enough")
	}
}

// Where the system does not tell what runs, a shell may read it, and nothing is taken for a password.
func TestReads(t *testing.T) {
	t.Parallel()
	shell := sandbox.Program{Name: "bash", Words: []string{"bash"}}
	sudo := sandbox.Program{Name: "sudo", Words: []string{"sudo", "x"}, Front: true}
	front := shell
	front.Front = true
	for name, c := range map[string]struct {
		all   []sandbox.Program
		known bool
		want  Typing
	}{
		"unknown":  {nil, false, Typing{Shell: true}},
		"nothing":  {nil, true, Typing{Secret: true}},
		"sudo":     {[]sandbox.Program{sudo}, true, Typing{Secret: true}},
		"in shell": {[]sandbox.Program{shell, sudo}, true, Typing{Shell: true, Secret: true}},
		"shell":    {[]sandbox.Program{front}, true, Typing{Shell: true}},
	} {
		if got := reads(c.all, c.known); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
