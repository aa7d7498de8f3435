package tool

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"codehand/tools/session"
)

// BenchmarkBind shows what a usual call costs and what a large one does: a string is decoded once, checked, and
// encoded once, so time and memory grow with its length and no faster.
func BenchmarkBind(b *testing.B) {
	type input struct {
		FilePath string `json:"file_path" jsonschema:"The file"`
		Content  string `json:"content" jsonschema:"Its content" rule:"maxlen=33554432"`
	}
	write := Define(Def[input]{
		Spec:  Spec{Name: "write_file"},
		Paths: func(in *input) []*string { return []*string{&in.FilePath} },
		Run:   func(context.Context, Env, input) (Result, error) { return Result{}, nil },
	})
	state, _ := newState(b)
	line := "\tfunc x() { return \"a\" } // hällo\n"
	for _, c := range []struct {
		name string
		size int
	}{{"1KB", 1000}, {"1MB", 1_000_000}, {"20MB", 20_000_000}} {
		raw, err := json.Marshal(map[string]string{"file_path": "a.go", "content": strings.Repeat(line, c.size/len(line))})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) { bind(b, write, state, raw) })
	}
	plain, _ := json.Marshal(map[string]string{"file_path": "a.go", "content": strings.Repeat("x", 20_000_000)})
	b.Run("20MB plain", func(b *testing.B) { bind(b, write, state, plain) })
	quotes, _ := json.Marshal(map[string]string{"file_path": "a.go", "content": strings.Repeat(`"\`, 5_000_000)})
	b.Run("10MB of quotes and backslashes", func(b *testing.B) { bind(b, write, state, quotes) })
}

func bind(b *testing.B, t Tool, s *session.State, raw []byte) {
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := t.Bind(s, raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDefine(b *testing.B) {
	for b.Loop() {
		Define(sampleDef())
	}
}
