package tooltest

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"codehand/tools/tool"
)

// Check says what would make a client or a model's provider reject a tool: no prose, or a schema that does not compile,
// wants no object, or has something that some provider refuses. Tests ask it about every tool of the program, which
// therefore need not be asked at every start: that took as long as all the rest of it.
func Check(t tool.Tool) error {
	if _, err := compile(t.Schema); err != nil {
		return fmt.Errorf("the schema does not compile: %w", err)
	}
	var root map[string]any
	if err := json.Unmarshal(t.Schema, &root); err != nil {
		return err
	}
	if root["type"] != "object" {
		return errors.New(`the schema's root needs "type":"object"`)
	}
	for field, text := range map[string]string{"Title": t.Spec.Title, "Description": t.Spec.Description,
		"Hint": t.Spec.Hint} {
		if text == "" {
			return fmt.Errorf("the field %s is empty", field)
		}
	}
	return checkObject(root)
}

// compile reads a schema and resolves what it refers to inside itself.
func compile(schema json.RawMessage) (*jsonschema.Resolved, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
}

// checkObject looks at an object's schema and at all schemas in it.
func checkObject(s map[string]any) error {
	for _, word := range []string{"anyOf", "oneOf", "allOf", "not", "if", "$ref"} {
		if s[word] != nil {
			return fmt.Errorf("%s is refused by some providers", word)
		}
	}
	properties, ok := s["properties"].(map[string]any)
	if !ok {
		return nil // any object: what is in it is checked by another tool
	}
	if s["additionalProperties"] != false {
		return errors.New(`an object needs "additionalProperties":false`)
	}
	for name, p := range properties {
		property, _ := p.(map[string]any)
		if property["description"] == nil {
			return fmt.Errorf("%s has no description", name)
		}
		if err := checkProperty(property); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func checkProperty(s map[string]any) error {
	kind, ok := s["type"].(string)
	if !ok {
		return errors.New("needs exactly one type")
	}
	switch kind {
	case "object":
		return checkObject(s)
	case "array":
		items, ok := s["items"].(map[string]any)
		if !ok {
			return errors.New("an array needs items")
		}
		return checkProperty(items)
	}
	return nil
}
