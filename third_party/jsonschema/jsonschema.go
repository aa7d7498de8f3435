// Package jsonschema stands in for github.com/santhosh-tekuri/jsonschema/v6 in what is built from a checkout (go.work).
//
// The real package compiles the meta-schemas of five drafts whenever a program starts: 4 ms and 1.7 MB, a quarter of
// the start of codehand. Only mcp-go's validation of inputs and outputs uses it, which is off unless a server asks for
// it, and codehand does not: the tools check their inputs themselves. This package has the names that mcp-go v1.2.1
// needs (server/input_validation.go and output_validation.go) and fails closed: with validation on, every call is an
// error.
//
// Remove it with go.work when the package, or mcp-go, makes that work on first use. Without go.work, as with
// `go install …@VERSION`, the real package is linked and everything else is the same.
package jsonschema

import (
	"encoding/json"
	"errors"
	"io"
)

var errAbsent = errors.New("this build has no JSON Schema validator: see go.work")

// A Compiler compiles nothing.
type Compiler struct{}

// A Schema accepts nothing.
type Schema struct{}

// A ValidationError is never returned.
type ValidationError struct {
	InstanceLocation []string
	ErrorKind        any
	Causes           []*ValidationError
}

func (*ValidationError) Error() string { return errAbsent.Error() }

// NewCompiler returns a compiler that compiles nothing.
func NewCompiler() *Compiler { return &Compiler{} }

// AddResource always fails.
func (*Compiler) AddResource(string, any) error { return errAbsent }

// Compile always fails.
func (*Compiler) Compile(string) (*Schema, error) { return nil, errAbsent }

// Validate always fails.
func (*Schema) Validate(any) error { return errAbsent }

// UnmarshalJSON decodes one value, with numbers as json.Number.
func UnmarshalJSON(r io.Reader) (any, error) {
	d := json.NewDecoder(r)
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}
