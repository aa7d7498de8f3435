package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// mounted says whether s is what the name of a mounted tool looks like.
func mounted(s string) bool {
	return strings.HasPrefix(s, "mcp__") && len(s) > len("mcp__") && parameterName.fits(s)
}

// SelfCheck says what would make a client or a model's provider reject the tool; server asks before it opens a
// transport. Of a tool made by Wrap it demands only that the name is one, and that the schema compiles and wants an
// object; of ours also prose, and a schema without anything that some provider refuses.
func (t Tool) SelfCheck() error {
	if t.mounted && !mounted(t.Spec.Name) && !toolName.fits(t.Spec.Name) {
		return fmt.Errorf("the name is neither that of a mounted tool nor %v", toolName)
	}
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
	if t.mounted {
		return nil
	}
	if err := t.Spec.check(); err != nil {
		return err
	}
	for field, text := range map[string]string{"Title": t.Spec.Title, "Description": t.Spec.Description,
		"Hint": t.Spec.Hint} {
		if text == "" {
			return fmt.Errorf("the field %s is empty", field)
		}
	}
	return checkObject(root)
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
