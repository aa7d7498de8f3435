package tools

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/tools/catalog"
	"codehand/tools/git/changes"
	"codehand/tools/tool"
	"codehand/tools/tooltest"
	"codehand/tools/web"
	"codehand/tools/web/search"
)

// A rig calls tools in one session with real engines, over a directory of its own.
type rig struct {
	t   *testing.T
	dir string // the root
	*tooltest.Session
	engines Engines // of the tools that it calls
}

func newRig(t *testing.T, deny ...string) *rig {
	t.Helper()
	s := tooltest.New(t, catalogOf(All(Engines{})), deny...)
	pages := web.New(web.Options{})
	t.Cleanup(pages.Close)
	trees := changes.New("", "")
	t.Cleanup(trees.Close)
	// Nothing listens there: a test that wants answers brings an endpoint of its own.
	endpoint, err := search.New(search.Options{Kind: search.SearXNG, URL: "http://127.0.0.1:9"})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, dir: s.Dir, Session: s, engines: Engines{Web: pages, WebSearch: endpoint, Trees: trees}}
}

// catalogOf is what a session finds where nothing is switched off.
func catalogOf(all []tool.Tool) []catalog.Entry {
	entries := make([]catalog.Entry, 0, len(all))
	for _, x := range all {
		entries = append(entries, catalog.Entry{
			Name: x.Spec.Name, Aliases: x.Spec.Aliases, Elsewhere: x.Spec.Elsewhere, Description: x.Spec.Description,
			Hint: x.Spec.Hint, Deferred: x.Spec.Deferred, Schema: x.Schema,
		})
	}
	slices.SortFunc(entries, func(a, b catalog.Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries
}

// do calls a tool. args is JSON in which $WORK stands for the root. A refusal comes back as its text.
func (r *rig) do(name, args string) (tool.Result, string) {
	r.t.Helper()
	return r.doCtx(r.t.Context(), name, args, time.Time{})
}

func (r *rig) doCtx(ctx context.Context, name, args string, answerBy time.Time) (tool.Result, string) {
	r.t.Helper()
	call, err := r.tool(name).Bind(r.State, json.RawMessage(strings.ReplaceAll(args, "$WORK", r.dir)))
	if err != nil {
		return r.refused(tool.Result{}, err)
	}
	env := r.Env(call)
	env.AnswerBy = answerBy
	res, err := call.Run(ctx, env)
	if res.Saw != nil {
		res.Saw(ctx) // as the pipeline does for a text that it need not cut
	}
	return r.refused(res, err)
}

// tool is the tool of this name over the engines of the rig.
func (r *rig) tool(name string) tool.Tool {
	r.t.Helper()
	all := All(r.engines)
	i := slices.IndexFunc(all, func(x tool.Tool) bool { return x.Spec.Name == name })
	if i < 0 {
		r.t.Fatalf("there is no tool %s", name)
	}
	return all[i]
}

func (r *rig) refused(res tool.Result, err error) (tool.Result, string) {
	r.t.Helper()
	if err == nil {
		return res, res.Text
	}
	refusal, ok := errors.AsType[*tool.Refusal](err)
	if !ok {
		r.t.Fatalf("an error that is no refusal: %v", err)
	}
	return tool.Result{Failed: refusal.Code, Shows: refusal.Shows, Meta: refusal.Meta}, refusal.Error()
}

// ok is do for a call that must succeed.
func (r *rig) ok(name, args string) string {
	r.t.Helper()
	res, text := r.do(name, args)
	if res.Failed != "" {
		r.t.Fatalf("%s %s failed:\n%s", name, args, text)
	}
	return strings.ReplaceAll(text, r.dir, "$WORK")
}

// fails is do for a call that must fail with code.
func (r *rig) fails(code tool.Code, name, args string) string {
	r.t.Helper()
	res, text := r.do(name, args)
	if res.Failed != code || !strings.HasPrefix(text, string(code)+": ") {
		r.t.Fatalf("%s %s: code %q, want %q:\n%s", name, args, res.Failed, code, text)
	}
	return strings.ReplaceAll(text, r.dir, "$WORK")
}

// number calls a tool that refuses with this code, and returns the number of its refusal.
func (r *rig) number(code tool.Code, name, args string) int {
	r.t.Helper()
	call, err := r.tool(name).Bind(r.State, json.RawMessage(args))
	if err == nil {
		_, err = call.Run(r.t.Context(), r.Env(call))
	}
	refusal, ok := errors.AsType[*tool.Refusal](err)
	if !ok || refusal.Code != code {
		r.t.Fatalf("%s %s: %v, want %s", name, args, err, code)
	}
	return refusal.Number
}

// write puts a file below the root, behind the server's back.
func (r *rig) write(name, content string) { r.t.Helper(); r.Write(name, content) }

// holds checks what is in a file.
func (r *rig) holds(name, want string) {
	r.t.Helper()
	got, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	if string(got) != want {
		r.t.Errorf("%s holds %q, want %q", name, got, want)
	}
}

// same compares texts and shows both.
func same(t *testing.T, got, want string) {
	t.Helper()
	tooltest.Same(t, got, want)
}
