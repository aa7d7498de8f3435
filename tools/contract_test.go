package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/tools/permission"
	"codehand/tools/tool"
)

// samples is one good call of each tool, over the files that a contract rig has. ctx ends before it runs in some tests.
var samples = map[string]string{
	"read_file":       `{"file_path":"$WORK/f"}`,
	"write_file":      `{"file_path":"$WORK/new","content":"x"}`,
	"edit_file":       `{"file_path":"$WORK/f","old_string":"one","new_string":"two"}`,
	"multi_edit":      `{"file_path":"$WORK/f","edits":[{"old_string":"one","new_string":"two"},{"file_path":"$WORK/g","old_string":"","new_string":"g"}]}`,
	"notebook_edit":   `{"notebook_path":"$WORK/n.ipynb","cell_id":"cell-0","new_source":"two"}`,
	"file_history":    `{"file_path":"$WORK/h"}`,
	"undo_change":     `{"file_path":"$WORK/h"}`,
	"list_files":      `{"pattern":"**/*","path":"$WORK"}`,
	"grep_search":     `{"pattern":"one","path":"$WORK"}`,
	"run_shell":       `{"command":"touch made; sleep 600"}`,
	"run_readonly":    `{"command":"sleep 60; ls"}`,
	"job_output":      `{"job_id":"$JOB","block":true,"timeout_ms":600000}`,
	"job_stop":        `{"job_id":"$JOB"}`,
	"enter_plan_mode": `{}`,
	"exit_plan_mode":  `{"plan":"1. Think."}`,

	"skill":             `{}`,
	"tool_search":       `{"query":"plan"}`,
	"call_tool":         `{"name":"list_files","arguments":{"pattern":"**/*","path":"$WORK"}}`,
	"todo_write":        `{"todos":[{"content":"one","status":"pending"}]}`,
	"task_create":       `{"subject":"one","description":"do it"}`,
	"task_get":          `{"taskId":"1"}`,
	"task_list":         `{}`,
	"task_update":       `{"taskId":"1","status":"completed"}`,
	"ask_user_question": `{"questions":[{"question":"Which?","header":"Way","options":[{"label":"a"},{"label":"b"}]}]}`,
	"session_config":    `{}`,
}

// noTargets are tools that reach nothing which a rule could name: jobs, lists and tools of the session, or a person.
var noTargets = []string{"job_output", "job_stop", "tool_search", "call_tool", "task_get", "task_list", "ask_user_question"}

// contractNotebook is the notebook that samples name.
const contractNotebook = `{"cells":[{"cell_type":"markdown","metadata":{},"source":["one"]}],"metadata":{},"nbformat":4,"nbformat_minor":4}`

// A contractRig is a rig with the files and the job that samples name.
func contractRig(t *testing.T) (*rig, string) {
	t.Helper()
	r := newRig(t)
	r.write("f", "one\n")
	r.ok("read_file", `{"file_path":"f"}`)
	r.write("n.ipynb", contractNotebook)
	r.ok("read_file", `{"file_path":"n.ipynb"}`)
	r.ok("write_file", `{"file_path":"h","content":"here\n"}`)
	res, _ := r.do("run_shell", `{"command":"sleep 600","run_in_background":true}`)
	return r, res.Meta.Job.ID
}

// each runs a test for each tool with its sample as a JSON object.
func each(t *testing.T, do func(t *testing.T, r *rig, x tool.Tool, sample map[string]any)) {
	t.Helper()
	for _, x := range All() {
		t.Run(x.Spec.Name, func(t *testing.T) {
			t.Parallel()
			text, ok := samples[x.Spec.Name]
			if !ok {
				t.Fatalf("%s has no sample: add a good call to samples in tools/contract_test.go", x.Spec.Name)
			}
			r, job := contractRig(t)
			var sample map[string]any
			if err := json.Unmarshal([]byte(strings.NewReplacer("$WORK", r.dir, "$JOB", job).Replace(text)), &sample); err != nil {
				t.Fatal(err)
			}
			do(t, r, x, sample)
		})
	}
}

func encode(t *testing.T, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// code returns the code of a refusal; "": err is none.
func code(err error) tool.Code {
	if r, ok := errors.AsType[*tool.Refusal](err); ok {
		return r.Code
	}
	return ""
}

func TestContractUnknownKeys(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig, x tool.Tool, sample map[string]any) {
		sample["no_such_parameter"] = 1
		if _, err := x.Bind(r.State, encode(t, sample)); code(err) != tool.InputInvalid {
			t.Errorf("an unknown parameter gives %v", err)
		}
	})
}

// What Bind makes of an input is the same when it is bound again: hooks and the audit see what runs.
func TestContractCanonical(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig, x tool.Tool, sample map[string]any) {
		once, err := x.Bind(r.State, encode(t, sample))
		if err != nil {
			t.Fatal(err)
		}
		twice, err := x.Bind(r.State, once.Input)
		if err != nil || !bytes.Equal(once.Input, twice.Input) {
			t.Errorf("%v\n%s\n%s", err, once.Input, twice.Input)
		}
		if once.Activity == "" || len([]rune(once.Activity)) > 50 {
			t.Errorf("the activity is %q, not 1 to 50 characters: set Def.Activity", once.Activity)
		}
		if len(once.Targets) == 0 && !once.Traits.Private && !slices.Contains(noTargets, x.Spec.Name) {
			t.Error("rules have nothing to match: the call has no target: set Def.Paths to the fields that name files, or Def.Targets")
		}
	})
}

// A call whose client has gone does nothing. (The test hangs if it does not end.)
func TestContractCancelled(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig, x tool.Tool, sample map[string]any) {
		call, err := x.Bind(r.State, encode(t, sample))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, dispatches := x.Forward(encode(t, sample)); dispatches {
			return // the tool that it names runs
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		res, err := call.Run(ctx, r.Env(call))
		if !errors.Is(err, context.Canceled) && res.Failed != tool.Interrupted && !call.Traits.Private {
			t.Errorf("a cancelled call gives %v %q", err, res.Text)
		}
		r.holds("f", "one\n")
		r.holds("n.ipynb", contractNotebook)
		for _, name := range []string{"new", "g", "made"} {
			if _, err := os.Stat(filepath.Join(r.dir, name)); err == nil {
				t.Errorf("a cancelled call made %s", name)
			}
		}
	})
}

// Every parameter that names a file is refused outside the roots, straight and through a link.
func TestContractOutside(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig, x tool.Tool, sample map[string]any) {
		outside := t.TempDir()
		if err := os.WriteFile(filepath.Join(outside, "f"), []byte("one\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, filepath.Join(r.dir, "link")); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{filepath.Join(outside, "f"), "link/f", "../f", filepath.Join(r.dir, "..", "f")} {
			for _, key := range []string{"file_path", "path", "notebook_path"} {
				if !strings.Contains(string(x.Schema), `"`+key+`":{"type":"string"`) || sample[key] == nil {
					continue
				}
				input := map[string]any{}
				for k, v := range sample {
					input[k] = v
				}
				input[key] = path
				if key == "notebook_path" {
					input[key] = path + ".ipynb"
				}
				call, err := x.Bind(r.State, encode(t, input))
				if err == nil {
					_, err = call.Run(t.Context(), r.Env(call))
				}
				if code(err) != tool.OutsideRoots {
					t.Errorf("%s %q gives %v", key, path, err)
				}
			}
		}
	})
}

// Who denies Read denies every tool that takes a file: a reader or editor that is missing in the table of families in
// permission/rule.go would answer nevertheless.
func TestContractFamilies(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r *rig, x tool.Tool, sample map[string]any) {
		call, err := x.Bind(r.State, encode(t, sample))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(call.Targets, func(g permission.Target) bool { return g.Kind == permission.Path }) {
			return
		}
		denied := []string{"Read"}
		if !call.Traits.ReadOnly {
			denied = append(denied, "Edit")
		}
		for _, family := range denied {
			p, err := permission.New(permission.Options{Deny: []permission.Rule{{Text: family, Origin: "test", Dir: r.dir}}})
			if err != nil {
				t.Fatal(err)
			}
			if !p.Off(x.Spec.Name, x.Spec.Aliases, x.Spec.Family) {
				t.Errorf("%s takes a file, but the rule %s does not deny it: add it to readers or editors, and to insteads, in permission/rule.go", x.Spec.Name, family)
			}
		}
	})
}
