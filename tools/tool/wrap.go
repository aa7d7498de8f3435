package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"codehand/tools/permission"
	"codehand/tools/session"
)

// Wrap makes a Tool from a schema and a function, for mounted tools and test fixtures. Spec.Traits hold for every
// input; leave them zero for a stranger's tool, whatever it says about itself. The schema goes out as it is. Bind
// checks inputs against it if it compiles and refers to nothing; else it only sees to it that an object comes in,
// and the tool checks the rest. Inputs keep the order of their keys. A nil run is a Tool that cannot be called.
func Wrap(spec Spec, schema json.RawMessage, run func(context.Context, Env, json.RawMessage) (Result, error)) Tool {
	t := Tool{Spec: spec, Schema: schema, mounted: true}
	if run == nil {
		return t
	}
	check := checker(schema)
	t.bind = func(_ context.Context, _ *session.State, raw json.RawMessage) (Call, error) {
		obj, wrong := arguments(raw)
		if wrong == "" {
			wrong = check(obj)
		}
		if wrong != "" {
			return Call{}, Invalid(spec.Name, wrong)
		}
		var input bytes.Buffer
		_ = json.Compact(&input, obj) // it is valid
		return Call{
			Spec:    spec,
			Input:   input.Bytes(),
			Traits:  spec.Traits,
			Verdict: permission.Allow,
			Run: func(ctx context.Context, env Env) (Result, error) {
				return run(ctx, env, input.Bytes())
			},
		}, nil
	}
	return t
}

// checker returns a function that says what is wrong with an object; "": nothing that this schema forbids.
func checker(schema json.RawMessage) func(obj []byte) string {
	compiled, err := compile(schema)
	if err != nil || refers(schema) {
		return func([]byte) string { return "" }
	}
	return func(obj []byte) string {
		var value any
		if err := json.Unmarshal(obj, &value); err != nil {
			return "the arguments are not valid JSON"
		}
		if err := compiled.Validate(value); err != nil {
			return strings.TrimPrefix(err.Error(), "validating root: ")
		}
		return ""
	}
}

// compile reads a schema and resolves what it refers to inside itself.
func compile(schema json.RawMessage) (*jsonschema.Resolved, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
}

// refers says whether a schema may refer to itself. jsonschema-go v0.4.3 follows {"allOf":[{"$ref":"#"}]} until the
// stack overflows, which no recover stops: a stranger's schema could end the server.
func refers(schema []byte) bool {
	return bytes.Contains(schema, []byte("ref\"")) || bytes.Contains(schema, []byte("Ref\"")) ||
		bytes.Contains(schema, []byte(`\u`))
}
