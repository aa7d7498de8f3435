package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	agents "codehand/tools/agent"
	"codehand/tools/permission"
	"codehand/tools/tool"
)

// minFinds is how many searches a tool that is found by searching must be found by.
const minFinds = 2

// incomplete says what the declaration of a tool lacks of what rules and tests need.
func incomplete(s tool.Spec) []string {
	var lacks []string
	for _, need := range []struct {
		has  bool
		text string
	}{
		{s.Family != permission.FamilyUnknown, "Family: say which rules cover it, such as permission.FamilyRead if it shows what is in files; until then all that deny do"},
		{json.Valid([]byte(s.Example)) && strings.HasPrefix(s.Example, "{"), "Example: give the arguments of a good call, as a JSON object"},
		{!s.Deferred || len(s.Finds) >= minFinds, "Finds: give what models type into tool_search when they want it, twice at least"},
	} {
		if !need.has {
			lacks = append(lacks, need.text)
		}
	}
	return lacks
}

// TestForAgents: a list elsewhere named the tools that no sub-agent gets, so a new tool that needs a person was given to
// them unless its author knew of the list. Now a tool that says nothing is given to none.
func TestForAgents(t *testing.T) {
	t.Parallel()
	given := func(x agents.Offered, kind agents.Type, deeper bool) bool {
		got, _ := kind.Pick([]agents.Offered{x}, deeper)
		return len(got) > 0
	}
	times := 0
	for _, x := range All(Engines{}) {
		name, spec := x.Spec.Name, x.Spec
		if spec.ForAgents == tool.AllAgents && !spec.Traits.ReadOnly && !spec.Traits.Private {
			t.Errorf("%s: sub-agents that only read must not get a tool that changes something: say tool.ChangingAgents", name)
		}
		if spec.ForAgents > tool.ProgramAgents && (spec.Personal || x.Dispatches()) {
			t.Errorf("%s: nobody sits before a sub-agent, and it needs no dispatcher: leave ForAgents out", name)
		}
		silent := x
		silent.Spec.ForAgents = tool.NoAgents
		for _, kind := range []agents.Type{{}, {ReadOnly: true}, {Tools: []string{"*"}}, {Tools: append([]string{name}, spec.Aliases...)}, {Tools: spec.Elsewhere}} {
			for _, deeper := range []bool{false, true} {
				if given(silent.Offered(), kind, deeper) {
					t.Errorf("%s, which says nothing, is given to sub-agents of the type %+v", name, kind)
				}
				if given(x.Offered(), kind, deeper) {
					times++
				}
			}
		}
	}
	if times == 0 {
		t.Error("no tool is given to anybody")
	}
}

func TestContractSpec(t *testing.T) {
	t.Parallel()
	for _, x := range All(Engines{}) {
		for _, lack := range incomplete(x.Spec) {
			t.Errorf("%s has no %s", x.Spec.Name, lack)
		}
	}
	bare := tool.Spec{Name: "x", Deferred: true}
	if lacks := incomplete(bare); len(lacks) != 3 {
		t.Errorf("a tool that declares nothing lacks %q", lacks)
	}
	whole := tool.Spec{Name: "x", Deferred: true, Family: permission.FamilyNone, Example: "{}", Finds: []string{"x", "find x"}}
	if lacks := incomplete(whole); lacks != nil {
		t.Errorf("a tool that declares all lacks %q", lacks)
	}
	for i, lame := range []func(*tool.Spec){
		func(s *tool.Spec) { s.Family = permission.FamilyUnknown },
		func(s *tool.Spec) { s.Example = "" },
		func(s *tool.Spec) { s.Finds = s.Finds[:1] },
	} {
		s := whole
		if lame(&s); len(incomplete(s)) != 1 {
			t.Errorf("case %d: %q", i, incomplete(s))
		}
	}
}

// contractNotebook is the notebook that examples name.
const contractNotebook = `{"cells":[{"cell_type":"markdown","metadata":{},"source":["one"]}],"metadata":{},"nbformat":4,"nbformat_minor":4}`

// A contractRig is a rig with the files that the example of a tool names, and its job if it names one.
func contractRig(t *testing.T, spec tool.Spec) (r *rig, job string) {
	t.Helper()
	r = newRig(t)
	r.write("f", "one\n")
	r.ok("read_file", `{"file_path":"f"}`)
	r.write("n.ipynb", contractNotebook)
	r.ok("read_file", `{"file_path":"n.ipynb"}`)
	r.ok("write_file", `{"file_path":"h","content":"here\n"}`)
	if !strings.Contains(spec.Example, "$JOB") {
		return r, ""
	}
	start := `{"command":"sleep 600","run_in_background":true}`
	if spec.Name == "job_input" && runtime.GOOS == "linux" {
		start = `{"command":"exec cat","pty":true}` // its answer comes when the program waits
	}
	res, _ := r.do("run_shell", start)
	return r, res.Meta.Job.ID
}

// each runs a test for each tool with its example as a JSON object.
func each(t *testing.T, do func(t *testing.T, r *rig, x tool.Tool, sample map[string]any)) {
	t.Helper()
	for _, x := range All(Engines{}) {
		t.Run(x.Spec.Name, func(t *testing.T) {
			t.Parallel()
			r, job := contractRig(t, x.Spec)
			x := r.tool(x.Spec.Name)
			var sample map[string]any
			if err := json.Unmarshal([]byte(strings.NewReplacer("$WORK", r.dir, "$JOB", job).Replace(x.Spec.Example)), &sample); err != nil {
				t.Fatalf("the example is no JSON object: %v", err)
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
		if once.Activity == "" || len([]rune(once.Activity)) > 100 {
			t.Errorf("the activity is %q, not 1 to 100 characters: set Def.Activity", once.Activity)
		}
		if len(once.Targets) == 0 && !once.Traits.Private && x.Spec.NoTargets == "" {
			t.Error("rules have nothing to match: the call has no target: set Def.Paths to the fields that name files, or Def.Targets, or say in Spec.NoTargets why there is none")
		}
		if len(once.Targets) > 0 && x.Spec.NoTargets != "" {
			t.Errorf("the call has a target, though Spec.NoTargets says: %s", x.Spec.NoTargets)
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

// Who denies Read denies every tool that takes a file: one with another family would answer nevertheless.
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
				t.Errorf("%s takes a file, but the rule %s does not deny it: set Spec.Family to permission.FamilyRead, or FamilyEdit if it changes files", x.Spec.Name, family)
			}
		}
	})
}
