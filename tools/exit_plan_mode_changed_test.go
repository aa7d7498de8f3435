package tools

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/tools/permission"
	"codehand/tools/tool"
)

// What stands in the place of the plan file later could be changed in plan mode, under the plan's name or its own: a
// link in a root made any file of it the plan.
func TestPlanFileReplaced(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(path, other string) error{
		"link":      func(path, other string) error { return os.Symlink(other, path) },
		"directory": func(path, _ string) error { return os.Mkdir(path, 0o700) },
	} {
		r := newRig(t)
		r.Plans, r.PlanFallback = filepath.Join(r.dir, "plans"), "auto"
		path := r.enter()
		other := filepath.Join(r.dir, "main.go")
		write(t, other, "package main")
		if err := errors.Join(os.Remove(path), replace(path, other)); err != nil {
			t.Fatal(err)
		}
		for _, args := range []string{`{"plan":"1. Think."}`, `{}`} {
			if text := r.fails(tool.NotRegular, "exit_plan_mode", args); !strings.Contains(text, "Call enter_plan_mode for a new one.") {
				t.Errorf("%s: %s", name, text)
			}
		}
		same(t, content(t, other), "package main")
		again := r.enter()
		if again == path {
			t.Errorf("%s: it is still the plan file", name)
		}
		r.okRaw("exit_plan_mode", `{"plan":"1. Think."}`)
		same(t, content(t, again), "1. Think.")
		same(t, content(t, other), "package main")
	}
}

// While a person read one plan, the agent put another one into the file, and was told that the user had edited and
// approved it.
func TestExitPlanModeOwnEdit(t *testing.T) {
	t.Parallel()
	for _, plan := range []string{"", "1. Think.\n"} {
		r := newRig(t)
		r.Client.CanAsk, r.Plans = true, filepath.Join(r.dir, "plans")
		path := r.enter()
		edit := func(text string) {
			raw, err := json.Marshal(map[string]string{"file_path": path, "content": text})
			if err != nil {
				t.Fatal(err)
			}
			r.okRaw("write_file", string(raw))
		}
		edit("1. Think.\n")
		text := r.present(plan, func() { edit("1. Remove everything.\n") }, tool.Accepted, decision(saysAccept))
		if !strings.HasPrefix(text, "Plan mode stays on: the plan file changed while the user was deciding") || r.mode() != permission.Plan {
			t.Errorf("plan %q: mode %s: %s", plan, r.mode(), text)
		}
		same(t, content(t, path), "1. Remove everything.\n")
	}
	// What was shown is what is in the file now.
	r := newRig(t)
	r.Client.CanAsk = true
	path := r.enter()
	text := r.present("1. Think.\n", func() { write(t, path, "1. Think.\n") }, tool.Accepted, decision(saysAccept))
	if !strings.HasPrefix(text, "User has approved your plan. It is saved at "+path+".\n") {
		t.Error(text)
	}
}

// A state directory behind a link holds plans like any other.
func TestPlansBehindALink(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.PlanFallback = "auto"
	link := filepath.Join(t.TempDir(), "state")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	r.Plans = filepath.Join(link, "plans")
	path := r.enter()
	if text := r.okRaw("exit_plan_mode", `{"plan":"1. Think."}`); !strings.Contains(text, " It is saved at "+path) {
		t.Error(text)
	}
	same(t, content(t, path), "1. Think.")
}
