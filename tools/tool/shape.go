package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// A kind is what a shape holds.
type kind int

const (
	text kind = iota
	integer
	boolean
	list
	object
	free // any object: its parameters are another tool's business
)

// names are the kinds as JSON Schema calls them.
var names = [...]string{"string", "integer", "boolean", "array", "object", "object"}

// named are the kinds as a sentence calls them.
var named = [...]string{"a string", "an integer", "true or false", "an array", "an object", "an object"}

// A shape is one value of an input: what the schema publishes and Bind enforces. Shapes do not change
// after newShape, so all calls share them.
type shape struct {
	limits
	kind     kind
	name     string // of the parameter; "" for the root and for items
	doc      string
	optional bool
	hidden   bool
	absent   bool     // required, and a call that leaves it out means preset all the same
	field    int      // of its struct
	item     *shape   // of a list
	fields   []*shape // of an object, in the order of its struct
	byName   map[string]*shape
	accept   map[string]string // of an object: names that are accepted, and the parameters that they mean
	typ      reflect.Type
}

// givenText is a string of which the tool wants to know whether it was given: nil, it was not.
var givenText = reflect.TypeFor[*string]()

var rawMessage = reflect.TypeFor[json.RawMessage]()

// newShape reads an input struct.
func newShape(t reflect.Type) (*shape, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("the input is a %v; it must be a struct", t)
	}
	return shapeOf(t, nil)
}

// shapeOf reads a type. up holds the structs on the way, because one that holds itself would never end.
func shapeOf(t reflect.Type, up []reflect.Type) (*shape, error) {
	s := &shape{typ: t}
	switch {
	case t == rawMessage:
		s.kind = free
	case t.Kind() == reflect.String, t == givenText:
		s.kind = text
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		s.kind = integer
	case t.Kind() == reflect.Bool:
		s.kind = boolean
	case t.Kind() == reflect.Slice:
		s.kind = list
		item, err := shapeOf(t.Elem(), up)
		if err != nil {
			return nil, err
		}
		if item.kind == list {
			return nil, errors.New("a list of lists is not supported")
		}
		if item.typ == givenText {
			return nil, errors.New("a list of pointers is not supported")
		}
		s.item = item
	case t.Kind() == reflect.Struct:
		s.kind = object
		return s, s.readFields(up)
	default:
		return nil, fmt.Errorf("type %v is not supported; an interface would publish a union of types", t)
	}
	return s, nil
}

func (s *shape) readFields(up []reflect.Type) error {
	for _, t := range up {
		if t == s.typ {
			return fmt.Errorf("%v holds itself", t)
		}
	}
	s.byName = map[string]*shape{}
	for i := range s.typ.NumField() {
		f := s.typ.Field(i)
		tag, ok := f.Tag.Lookup("json")
		if tag == "-" {
			continue
		}
		if !ok || !f.IsExported() || f.Anonymous {
			return fmt.Errorf("%s needs a json tag, and must be exported and not embedded", f.Name)
		}
		p, err := shapeOf(f.Type, append(up, s.typ))
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		p.field = i
		if err := p.readTags(tag, f.Tag); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if s.byName[p.name] != nil {
			return fmt.Errorf("%s: the name %q is taken", f.Name, p.name)
		}
		s.byName[p.name] = p
		s.fields = append(s.fields, p)
	}
	return nil
}

func (s *shape) readTags(tag string, all reflect.StructTag) error {
	name, option, _ := strings.Cut(tag, ",")
	if !parameterName.fits(name) {
		return fmt.Errorf("the name %q does not match %v", name, parameterName)
	}
	if option != "" && option != "omitempty" {
		return fmt.Errorf("the json option %q is unknown", option)
	}
	s.name, s.optional, s.doc = name, option == "omitempty", all.Get("jsonschema")
	if err := s.readRule(all.Get("rule")); err != nil {
		return err
	}
	if s.typ == givenText && (!s.optional || s.preset != nil) {
		return errors.New("a pointer is for an optional string without a default")
	}
	return nil
}

// sample makes v a value in which every list has one item, so that Def.Paths finds
// something to point at.
func (s *shape) sample(v reflect.Value) {
	switch s.kind {
	case list:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		s.item.sample(v.Index(0))
	case object:
		for _, f := range s.fields {
			f.sample(v.Field(f.field))
		}
	}
}
