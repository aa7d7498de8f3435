package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"codehand/tools/permission"
	"codehand/tools/session"
)

// foreignName is what clients and models take as the name of a tool.
var foreignName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`) })

// Foreign makes a tool that is not compiled in, such as one of a mounted server. schema is the JSON schema of its
// input, whose root is an object; run gets an object that has all properties which the root requires. check says what
// else is wrong with it, each half a sentence, before anyone is asked; nil: run checks the rest itself. The tool goes
// through the pipeline like any other: its traits are those of spec, and where they say nothing they are the strictest.
// Unless spec.Traits.Local says that it stays on this machine, each call counts as one that reaches the network. The
// error says what is wrong with spec or schema.
func Foreign(spec Spec, schema json.RawMessage, check func(input json.RawMessage) []string,
	run func(ctx context.Context, env Env, input json.RawMessage) (Result, error)) (Tool, error) {
	spec = spec.trimmed()
	if !foreignName().MatchString(spec.Name) {
		return Tool{}, fmt.Errorf("tool %.80q: a name has 1 to 64 letters, digits, _ and -", spec.Name)
	}
	var root struct {
		Type     string   `json:"type"`
		Required []string `json:"required"`
	}
	if err := json.Unmarshal(schema, &root); err != nil {
		return Tool{}, fmt.Errorf("tool %s: schema: %w", spec.Name, err)
	}
	if root.Type != "object" {
		return Tool{}, fmt.Errorf("tool %s: schema: its root is not of type object", spec.Name)
	}
	f := foreign{spec: spec, required: root.Required, check: check, run: run}
	return Tool{Spec: spec, Schema: slices.Clone(schema), bind: f.bind}, nil
}

// foreign is what the calls of a foreign tool share.
type foreign struct {
	spec     Spec
	required []string
	check    func(json.RawMessage) []string
	run      func(context.Context, Env, json.RawMessage) (Result, error)
}

// bind is Tool.Bind.
func (f foreign) bind(_ context.Context, _ *session.State, raw json.RawMessage) (Call, error) {
	obj, wrong := arguments(raw)
	if wrong != "" {
		return Call{}, Invalid(f.spec.Name, wrong)
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(obj, &given); err != nil {
		return Call{}, Invalid(f.spec.Name, "the arguments are not valid JSON")
	}
	var lacks problems
	for _, name := range f.required {
		if _, ok := given[name]; !ok {
			lacks.add("%q is required", name)
		}
	}
	if lacks != nil {
		return Call{}, Invalid(f.spec.Name, lacks...)
	}
	var input bytes.Buffer
	if err := json.Compact(&input, obj); err != nil {
		return Call{}, Invalid(f.spec.Name, "the arguments are not valid JSON")
	}
	if f.check != nil {
		if wrong := f.check(input.Bytes()); len(wrong) > 0 {
			return Call{}, Invalid(f.spec.Name, wrong...)
		}
	}
	c := Call{Spec: f.spec, Input: input.Bytes(), Traits: f.spec.Traits, Verdict: permission.Allow,
		Activity: oneLine("Calling " + f.spec.Name)}
	if !f.spec.Traits.Local {
		// Only the tool knows the host, so its own name stands for it.
		c.Targets = []permission.Target{{Kind: permission.Domain, Value: f.spec.Name}}
	}
	c.Run = func(ctx context.Context, env Env) (Result, error) { return f.run(ctx, env, c.Input) }
	return c, nil
}
