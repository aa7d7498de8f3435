package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// The bytes are what clients see and cache, so they are compared as they are.
func TestSchema(t *testing.T) {
	want := `{"type":"object","properties":{` +
		`"file_path":{"type":"string","description":"The file, absolute or not"},` +
		`"offset":{"type":"integer","description":"First line","default":1,"minimum":1},` +
		`"limit":{"type":"integer","description":"Lines","minimum":1,"maximum":2000},` +
		`"output_mode":{"type":"string","description":"What to show","enum":["content","count"],"default":"count"},` +
		`"-A":{"type":"integer","description":"Lines after","minimum":0,"maximum":1000},` +
		`"-n":{"type":"boolean","description":"Line numbers","default":true},` +
		`"replace_all":{"type":"boolean","description":"Every match"},` +
		`"text":{"type":"string","description":"Some text, with a comma","minLength":2,"maxLength":8},` +
		`"path":{"type":"string","description":"A directory"},` +
		`"edits":{"type":"array","description":"Edits in order","minItems":1,"maxItems":3,"items":{"type":"object","properties":{` +
		`"file_path":{"type":"string","description":"File"},"old_string":{"type":"string","description":"Old"},` +
		`"replace_all":{"type":"boolean","description":"All"},"count":{"type":"integer","description":"How many","minimum":1}},` +
		`"required":["old_string"],"additionalProperties":false}},` +
		`"words":{"type":"array","description":"Words","maxItems":4,"items":{"type":"string","maxLength":5}},` +
		`"lines":{"type":"array","description":"Lines","items":{"type":"integer","minimum":1}},` +
		`"arguments":{"type":"object","description":"Any object"}},` +
		`"required":["file_path"],"additionalProperties":false}`
	for range 3 {
		sample := Define(sampleDef())
		if got := string(sample.Schema); got != want {
			t.Fatalf("got %s\nwant %s", got, want)
		}
	}
}

func TestSchemaOfNothing(t *testing.T) {
	none := Define(Def[struct{}]{Spec: Spec{Name: "none"}, Run: func(context.Context, Env, struct{}) (Result, error) { return Result{}, nil }})
	if got, want := string(none.Schema), `{"type":"object","properties":{},"additionalProperties":false}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestDefineTrimsDescription(t *testing.T) {
	d := sampleDef()
	d.Spec.Description = "\nReads.\n"
	if got := Define(d).Spec.Description; got != "Reads." {
		t.Errorf("got %q", got)
	}
}

// panicOf returns what f panics with, "" if it does not.
func panicOf(f func()) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}

func TestDefinePanicsOnSpec(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(*Def[sampleInput])
	}{
		{"upper case", "the name is not", func(d *Def[sampleInput]) { d.Spec.Name = "Sample" }},
		{"no name", "the name is not", func(d *Def[sampleInput]) { d.Spec.Name = "" }},
		{"a long name", "the name is not", func(d *Def[sampleInput]) { d.Spec.Name = strings.Repeat("a", 41) }},
		{"an alias like the name", "the alias", func(d *Def[sampleInput]) { d.Spec.Aliases = []string{"sample_tool"} }},
		{"an alias twice", "the alias", func(d *Def[sampleInput]) { d.Spec.Aliases = []string{"A", "A"} }},
		{"an alias with a blank", "the alias", func(d *Def[sampleInput]) { d.Spec.Aliases = []string{"A B"} }},
		{"a long description", "has 2001 bytes", func(d *Def[sampleInput]) { d.Spec.Description = strings.Repeat("a", 2001) }},
		{"an invisible character", "invisible character U+200B", func(d *Def[sampleInput]) { d.Spec.Description = "a\u200bb" }},
		{"a description that is no text", "not UTF-8", func(d *Def[sampleInput]) { d.Spec.Description = "a\xff" }},
		{"a short hint", "the hint has 1 words", func(d *Def[sampleInput]) { d.Spec.Hint = "sample" }},
		{"MaxRunes", "out of range", func(d *Def[sampleInput]) { d.Spec.MaxRunes = -2 }},
		{"Scope", "out of range", func(d *Def[sampleInput]) { d.Spec.Scope = 9 }},
		{"read-only and additive", "Additive", func(d *Def[sampleInput]) { d.Spec.Traits = Traits{ReadOnly: true, Additive: true} }},
		{"a writer beside others", "Parallel", func(d *Def[sampleInput]) { d.Spec.Traits = Traits{Parallel: true} }},
		{"no Run", "either Run or Forward", func(d *Def[sampleInput]) { d.Run = nil }},
		{"Run and Forward", "either Run or Forward", func(d *Def[sampleInput]) {
			d.Forward = func(sampleInput) (string, json.RawMessage) { return "", nil }
		}},
		{"accept for nothing", `cannot accept "x" for "y"`, func(d *Def[sampleInput]) { d.Accept = map[string]string{"x": "y"} }},
		{"accept for nothing of an item", `cannot accept "edits.x" for "y"`,
			func(d *Def[sampleInput]) { d.Accept = map[string]string{"edits.x": "y"} }},
		{"accept what an item has", `cannot accept "edits.count"`,
			func(d *Def[sampleInput]) { d.Accept = map[string]string{"edits.count": "old_string"} }},
		{"accept below a text", `cannot accept "words.x"`,
			func(d *Def[sampleInput]) { d.Accept = map[string]string{"words.x": "old_string"} }},
		{"accept what is there", `cannot accept "path"`, func(d *Def[sampleInput]) { d.Accept = map[string]string{"path": "file_path"} }},
		{"hide nothing", "hidden parameter", func(d *Def[sampleInput]) { d.Hidden = []string{"x"} }},
		{"hide what is required", "hidden parameter", func(d *Def[sampleInput]) { d.Hidden = []string{"file_path"} }},
		{"hide nothing of an item", "hidden parameter", func(d *Def[sampleInput]) { d.Hidden = []string{"edits.x"} }},
		{"hide what an item requires", "hidden parameter", func(d *Def[sampleInput]) { d.Hidden = []string{"edits.old_string"} }},
		{"hide below a text", "hidden parameter", func(d *Def[sampleInput]) { d.Hidden = []string{"words.x"} }},
		{"a published one without a description", "allow_large has no description", func(d *Def[sampleInput]) { d.Hidden = nil }},
		{"a path elsewhere", "Paths points", func(d *Def[sampleInput]) { d.Paths = func(*sampleInput) []*string { return []*string{new(string)} } }},
		{"a path that is nil", "Paths points", func(d *Def[sampleInput]) { d.Paths = func(*sampleInput) []*string { return []*string{nil} } }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := sampleDef()
			c.change(&d)
			got := panicOf(func() { Define(d) })
			if !strings.HasPrefix(got, "tool.Define: "+d.Spec.Name+": ") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q in it", got, c.want)
			}
		})
	}
}

// define tries an input type and returns what Define panics with.
func define[In any]() string {
	return panicOf(func() {
		Define(Def[In]{Spec: Spec{Name: "x"}, Run: func(context.Context, Env, In) (Result, error) { return Result{}, nil }})
	})
}

type endless struct {
	Down []endless `json:"down,omitempty" jsonschema:"d"`
}

func TestDefinePanicsOnInput(t *testing.T) {
	type embedded struct{ endless }
	for _, c := range []struct{ name, want, got string }{
		{"no struct", "must be a struct", define[string]()},
		{"a pointer", "not supported", define[struct {
			A *int `json:"a" jsonschema:"d"`
		}]()},
		{"a list of strings that may be missing", "pointer", define[struct {
			A []*string `json:"a" jsonschema:"d"`
		}]()},
		{"a pointer to a required string", "pointer", define[struct {
			A *string `json:"a" jsonschema:"d"`
		}]()},
		{"a pointer with a default", "pointer", define[struct {
			A *string `json:"a,omitempty" jsonschema:"d" rule:"default=x"`
		}]()},
		{"a float", "not supported", define[struct {
			A float64 `json:"a" jsonschema:"d"`
		}]()},
		{"a map", "not supported", define[struct {
			A map[string]string `json:"a" jsonschema:"d"`
		}]()},
		{"anything", "not supported", define[struct {
			A any `json:"a" jsonschema:"d"`
		}]()},
		{"bytes", "not supported", define[struct {
			A []byte `json:"a" jsonschema:"d"`
		}]()},
		{"a list of lists", "list of lists", define[struct {
			A [][]int `json:"a" jsonschema:"d"`
		}]()},
		{"a type in itself", "holds itself", define[endless]()},
		{"embedded", "needs a json tag", define[embedded]()},
		{"no json tag", "needs a json tag", define[struct{ A int }]()},
		{"a bad name", "does not match", define[struct {
			A int `json:"a b" jsonschema:"d"`
		}]()},
		{"no name", "does not match", define[struct {
			A int `json:",omitempty" jsonschema:"d"`
		}]()},
		{"an option", `option "string"`, define[struct {
			A int `json:"a,string" jsonschema:"d"`
		}]()},
		{"no description", "a has no description", define[struct {
			A string `json:"a"`
		}]()},
		{"no description inside", "a.b has no description", define[struct {
			A []struct {
				B string `json:"b"`
			} `json:"a" jsonschema:"d"`
		}]()},
		{"a bad description", "invisible character", define[struct {
			A string `json:"a" jsonschema:"d\u202e"`
		}]()},
		{"no minimum", "no minimum", define[struct {
			A int `json:"a" jsonschema:"d"`
		}]()},
		{"an unknown rule", "unknown key", define[struct {
			A int `json:"a" jsonschema:"d" rule:"least=1"`
		}]()},
		{"half a rule", "want key=value", define[struct {
			A int `json:"a" jsonschema:"d" rule:"min="`
		}]()},
		{"no number", "invalid syntax", define[struct {
			A int `json:"a" jsonschema:"d" rule:"min=x"`
		}]()},
		{"a rule twice", "said twice", define[struct {
			A int `json:"a" jsonschema:"d" rule:"min=1 min=2"`
		}]()},
		{"a rule for another type", "not for type", define[struct {
			A bool `json:"a" jsonschema:"d" rule:"min=1"`
		}]()},
		{"choices of numbers", "not for type", define[struct {
			A int `json:"a" jsonschema:"d" rule:"enum=1|2"`
		}]()},
		{"items of no list", "not for type", define[struct {
			A string `json:"a" jsonschema:"d" rule:"maxitems=2"`
		}]()},
		{"a choice twice", "said twice", define[struct {
			A string `json:"a" jsonschema:"d" rule:"enum=x|y|x"`
		}]()},
		{"an empty choice", "is empty", define[struct {
			A string `json:"a" jsonschema:"d" rule:"enum=x|"`
		}]()},
		{"limits that nothing meets", "above the maximum", define[struct {
			A int `json:"a" jsonschema:"d" rule:"min=2 max=1"`
		}]()},
		{"a length twice", "not for type", define[struct {
			A string `json:"a" jsonschema:"d" rule:"maxlen=2 maxrunes=2"`
		}]()},
		{"characters of a number", "not for type", define[struct {
			A int `json:"a" jsonschema:"d" rule:"min=1 maxrunes=2"`
		}]()},
		{"fewer characters than are wanted", "above the maximum", define[struct {
			A string `json:"a" jsonschema:"d" rule:"minlen=3 maxrunes=2"`
		}]()},
		{"a negative length", "below 0", define[struct {
			A string `json:"a" jsonschema:"d" rule:"minlen=-1"`
		}]()},
		{"a required default", "default is of an optional parameter", define[struct {
			A int `json:"a" jsonschema:"d" rule:"min=1 default=1"`
		}]()},
		{"a default that is too small", "default must be at least 1", define[struct {
			A int `json:"a,omitempty" jsonschema:"d" rule:"min=1 default=0"`
		}]()},
		{"a default that is no choice", "default must be one of", define[struct {
			A string `json:"a,omitempty" jsonschema:"d" rule:"enum=x|y default=z"`
		}]()},
		{"a default of another type", "invalid syntax", define[struct {
			A bool `json:"a,omitempty" jsonschema:"d" rule:"default=maybe"`
		}]()},
		{"a default for a list", "not for type", define[struct {
			A []int `json:"a,omitempty" jsonschema:"d" rule:"min=1 default=1"`
		}]()},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("%s: got %q, want %q in it", c.name, c.got, c.want)
		}
	}
}

// The type is put together here, because vet refuses to see it in a file.
func TestShapeRefusesNamesTwice(t *testing.T) {
	f := reflect.StructField{Name: "A", Type: reflect.TypeFor[string](), Tag: `json:"a" jsonschema:"d"`}
	g := f
	g.Name = "B"
	if _, err := newShape(reflect.StructOf([]reflect.StructField{f, g})); err == nil || !strings.Contains(err.Error(), `"a" is taken`) {
		t.Errorf("got %v", err)
	}
}

func TestDefineSkipsDash(t *testing.T) {
	if got := define[struct {
		A string   `json:"a" jsonschema:"d"`
		B *float64 `json:"-"`
	}](); got != "" {
		t.Errorf(`a field with json:"-" is no parameter, but: %s`, got)
	}
}

// A parameter of the items of a list can be accepted without being published, as one of the root can.
func TestHiddenInItems(t *testing.T) {
	d := sampleDef()
	d.Hidden = append(d.Hidden, "edits.count")
	tool := Define(d)
	if schema := string(tool.Schema); strings.Contains(schema, `"count":{`) || !strings.Contains(schema, `"old_string"`) {
		t.Errorf("the schema is %s", schema)
	}
	s, _ := newState(t)
	for input, want := range map[string]string{
		`{"file_path":"a","edits":[{"old_string":"x","count":2}]}`: "",
		`{"file_path":"a","edits":[{"old_string":"x","count":0}]}`: `"edits[0].count" must be at least 1`,
		`{"file_path":"a","edits":[{"old_string":"x","coun":2}]}`:  `unknown parameter "edits[0].coun"`,
	} {
		call, err := tool.Bind(s, json.RawMessage(input))
		if want == "" && (err != nil || !strings.Contains(string(call.Input), `"count":2`)) {
			t.Errorf("%s: %s, %v", input, call.Input, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "did you mean")) {
			t.Errorf("%s: %v", input, err)
		}
	}
}

// What is accepted beside the schema: a name of the items of a list, a choice by another word, and a required parameter
// that is left out.
func TestAcceptedBesideTheSchema(t *testing.T) {
	type item struct {
		Name string `json:"name" jsonschema:"Name"`
	}
	type input struct {
		What  string `json:"what" jsonschema:"What" rule:"absent=all"`
		State string `json:"state,omitempty" jsonschema:"State" rule:"enum=open|shut also=closed:shut|done:shut"`
		Items []item `json:"items,omitempty" jsonschema:"Items"`
	}
	tool := Define(Def[input]{
		Spec: Spec{Name: "sample_tool"}, Accept: map[string]string{"items.title": "name"},
		Run: func(context.Context, Env, input) (Result, error) { return Result{}, nil },
	})
	const schema = `{"type":"object","properties":{"what":{"type":"string","description":"What"},` +
		`"state":{"type":"string","description":"State","enum":["open","shut"]},` +
		`"items":{"type":"array","description":"Items",` +
		`"items":{"type":"object","properties":{"name":{"type":"string","description":"Name"}},"required":["name"],` +
		`"additionalProperties":false}}},"required":["what"],"additionalProperties":false}`
	if string(tool.Schema) != schema {
		t.Errorf("the schema is %s", tool.Schema)
	}
	s, _ := newState(t)
	for raw, want := range map[string]string{
		`{}`:                                 `{"what":"all"}`,
		`{"what":"","state":"closed"}`:       `{"what":"","state":"shut"}`,
		`{"state":"done"}`:                   `{"what":"all","state":"shut"}`,
		`{"items":[{"title":"a"}]}`:          `{"what":"all","items":[{"name":"a"}]}`,
		`{"what":null}`:                      `"what" must be a string, not null`,
		`{"state":"away"}`:                   `"state" must be one of "open", "shut", not "away"`,
		`{"items":[{"titl":"a"}]}`:           `unknown parameter "items[0].titl" (did you mean "name"?)`,
		`{"title":"a"}`:                      `unknown parameter "title"`,
		`{"items":[{"title":"a","name":1}]}`: `"name" and "title" are the same parameter and differ`,
	} {
		call, err := tool.Bind(s, json.RawMessage(raw))
		if got := string(call.Input); err == nil && got != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v", raw, got, err)
		}
	}
	for rule, want := range map[string]string{
		`enum=a|b also=c:d`:   "WORD:CHOICE",
		`enum=a|b also=a:b`:   "WORD:CHOICE",
		`also=c:a enum=a`:     "WORD:CHOICE",
		`enum=a|b absent=c`:   "the default must be one of",
		`absent=a absent=b`:   "said twice",
		`absent=a default=b`:  "said twice",
		`enum=a|b also=c:a|x`: "WORD:CHOICE",
	} {
		f := &shape{kind: text}
		if err := f.readRule(rule); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", rule, err)
		}
	}
	if err := (&shape{kind: text, optional: true}).readRule("absent=a"); err == nil {
		t.Error("an optional parameter has a default, which is published")
	}
}
