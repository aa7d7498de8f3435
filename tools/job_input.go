package tools

import (
	"context"
	_ "embed"
	"fmt"

	"codehand/tools/permission"
	"codehand/tools/running"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/typing"
)

//go:embed job_input.md
var jobInputText string

type jobInputInput struct {
	JobID   string   `json:"job_id" jsonschema:"id of the job"`
	Text    string   `json:"text,omitempty" jsonschema:"typed first, as it is" rule:"maxlen=100000"`
	Keys    []string `json:"keys,omitempty" jsonschema:"then pressed: Enter, Tab, Esc, Up, PageDown, Backspace, F1, Ctrl-C, Alt-x ..." rule:"maxitems=100 maxlen=20"`
	Columns int      `json:"columns,omitempty" jsonschema:"new width of the terminal" rule:"min=10 max=500"`
	Rows    int      `json:"rows,omitempty" jsonschema:"new height" rule:"min=2 max=200"`
	Timeout int      `json:"timeout_ms,omitempty" jsonschema:"longest wait for the program to be quiet" rule:"min=0 max=600000 default=3000"`

	typed typing.Typed `json:"-"`
}

var jobInput = tool.Define(tool.Def[jobInputInput]{
	Spec: tool.Spec{
		Name: "job_input", Title: "Type into job", Description: jobInputText,
		Hint:     "interactive program: type into its terminal, press keys, answer prompts",
		Deferred: true, MaxRunes: 30_000, Scope: tool.ScopeShell, Family: permission.FamilyBash,
		// Ungated: it types only if nothing else was typed since it was judged, and may wait for long
		Traits:    tool.Traits{Ungated: true},
		ForAgents: tool.ChangingAgents,
		Example:   `{"job_id":"$JOB","text":"one","keys":["Enter"],"timeout_ms":0}`,
		Finds: []string{"type into a running program", "answer a prompt", "send keys to a terminal",
			"interactive program", "pty terminal"},
	},
	Accept: map[string]string{
		"task_id": "job_id", "bash_id": "job_id", "shell_id": "job_id", "id": "job_id", "input": "text",
		"timeout": "timeout_ms", "wait_ms": "timeout_ms", "cols": "columns",
	},
	Available: running.NoShell,
	Check:     checkJobInput,
	Complete: func(ctx context.Context, s *session.State, in *jobInputInput) (err error) {
		in.typed, err = typing.Judge(ctx, s, in.JobID, in.pressed())
		return err
	},
	Targets: func(_ *session.State, in jobInputInput) []permission.Target {
		return []permission.Target{in.typed.Target}
	},
	Verdict: func(_ *session.State, in jobInputInput) permission.Verdict {
		if in.typed.Danger != "" {
			return permission.Ask // no rule and no mode stands in for a person
		}
		return permission.Allow
	},
	Activity: func(in jobInputInput) string { return "Typing into " + in.JobID },
	Run:      runJobInput,
})

// jobInputKeys are the names of keys, for people.
const jobInputKeys = "Enter, Tab, Shift-Tab, Esc, Backspace, Delete, Insert, Space, Up, Down, Left, Right, Home, " +
	"End, PageUp, PageDown, F1 to F12, Ctrl-A to Ctrl-Z or C-a, Alt-x or M-x, and single characters"

// pressed is what is typed, in order.
func (in jobInputInput) pressed() []typing.Key {
	var all []typing.Key
	if in.Text != "" {
		all = append(all, typing.Key{Text: in.Text})
	}
	for _, name := range in.Keys {
		key, _ := typing.Named(name) // checkJobInput has refused others
		all = append(all, key)
	}
	return all
}

func checkJobInput(in jobInputInput) error {
	var wrong []string
	for i, name := range in.Keys {
		if _, ok := typing.Named(name); !ok {
			wrong = append(wrong, fmt.Sprintf("\"keys[%d]\": there is no key %q; there are %s; longer text belongs "+
				"into \"text\"", i, name, jobInputKeys))
		}
	}
	if (in.Columns == 0) != (in.Rows == 0) {
		wrong = append(wrong, `"columns" and "rows" go together`)
	}
	if in.Text == "" && len(in.Keys) == 0 && in.Columns == 0 {
		wrong = append(wrong, `one of "text", "keys" and "columns" is required; job_output shows the screen`)
	}
	if wrong != nil {
		return tool.Invalid("job_input", wrong...)
	}
	return nil
}

func runJobInput(ctx context.Context, env tool.Env, in jobInputInput) (tool.Result, error) {
	if in.Columns > 0 {
		if err := typing.Resize(ctx, env, in.JobID, in.Columns, in.Rows); err != nil {
			return tool.Result{}, err
		}
	}
	if keys := in.pressed(); len(keys) > 0 {
		if err := in.typed.Type(ctx, env, in.JobID, keys); err != nil {
			return tool.Result{}, err
		}
	}
	s, err := typing.LookAt(ctx, env, in.JobID, running.JobWait(env, true, in.Timeout), nil)
	if err != nil {
		return tool.Result{}, typing.Refusal(ctx, env.State, in.JobID, err)
	}
	return s.Result(ctx, env), nil
}
