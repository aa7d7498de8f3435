package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"codehand/tools/language"
	servers "codehand/tools/lsp"
	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

//go:embed lsp.md
var lspText string

type lspInput struct {
	Operation string `json:"operation" jsonschema:"such as goToDefinition"`
	FilePath  string `json:"filePath,omitempty" jsonschema:"of all but workspaceSymbol"`
	Line      int    `json:"line,omitempty" jsonschema:"from 1" rule:"min=1"`
	Character int    `json:"character,omitempty" jsonschema:"from 1, in UTF-16 units" rule:"min=1"`
	Query     string `json:"query,omitempty" jsonschema:"of workspaceSymbol; else the name on the line" rule:"maxlen=1000"`
}

// maxPlaces is how many places one answer shows.
const maxPlaces = 200

// lspOperations are what can be asked. The second value says whether it is about a name in a file.
var lspOperations = map[string]bool{
	"goToDefinition": true, "findReferences": true, "hover": true, "documentSymbol": false, "workspaceSymbol": false,
	"goToImplementation": true, "prepareCallHierarchy": true, "incomingCalls": true, "outgoingCalls": true,
	"diagnostics": false,
}

var lsp = tool.Define(tool.Def[lspInput]{
	Spec: tool.Spec{
		Name: "lsp", Aliases: []string{"LSP"}, Title: "Ask language server", Description: lspText,
		Hint:     "definitions, references, symbols from a language server",
		Deferred: true, Backed: true, MaxRunes: 20_000, Scope: tool.ScopeRead, Family: permission.FamilyRead,
		Traits:    tool.Traits{ReadOnly: true, Parallel: true, Idempotent: true, Local: true},
		ForAgents: tool.AllAgents,
		Elsewhere: []string{"lsp"},
		Example:   `{"operation":"documentSymbol","filePath":"$WORK/f"}`,
		Finds: []string{
			"lsp", "language server", "go to definition", "goToDefinition", "find references", "hover symbol type",
			"workspace symbols", "incoming calls",
		},
	},
	Accept:    map[string]string{"file_path": "filePath", "path": "filePath", "column": "character"},
	Available: language.Missing,
	Paths:     func(in *lspInput) []*string { return []*string{&in.FilePath} },
	Activity: func(in lspInput) string {
		if in.FilePath == "" {
			return "Looking for " + wording.LineOf(in.Query, 30)
		}
		return "Asking about " + filepath.Base(in.FilePath)
	},
	Check: checkLsp,
	Run:   runLsp,
})

// lspShort are shorter names of operations, as lspOperation compares them. Symbols may be a file's or the workspace's.
var lspShort = map[string]string{
	"definition": "goToDefinition", "references": "findReferences", "implementation": "goToImplementation",
}

// lspOperation is the name of an operation in either spelling; "": there is none.
func lspOperation(name string) string {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
	for known := range lspOperations {
		if plain(known) == plain(name) {
			return known
		}
	}
	return lspShort[plain(name)]
}

func checkLsp(in lspInput) error {
	op := lspOperation(in.Operation)
	var wrong []string
	if op == "" {
		names := make([]string, 0, len(lspOperations))
		for name := range lspOperations {
			names = append(names, name)
		}
		slices.Sort(names)
		return tool.Invalid("lsp", fmt.Sprintf("\"operation\" must be one of %s, not %q", strings.Join(names, ", "),
			wording.Clip(in.Operation, 50)))
	}
	if in.FilePath == "" && op != "workspaceSymbol" {
		wrong = append(wrong, `"filePath" is required for `+op)
	}
	if in.Query == "" && op == "workspaceSymbol" {
		wrong = append(wrong, `"query" is required for workspaceSymbol`)
	}
	if lspOperations[op] && (in.Line == 0 || in.Character == 0 && in.Query == "") {
		wrong = append(wrong, `"line", and "character" or "query", are required for `+op)
	}
	if len(wrong) > 0 {
		return tool.Invalid("lsp", wrong...)
	}
	return nil
}

func runLsp(ctx context.Context, env tool.Env, in lspInput) (tool.Result, error) {
	op := lspOperation(in.Operation)
	if op == "workspaceSymbol" && in.FilePath == "" {
		return lspSymbols(ctx, env, in)
	}
	doc, err := language.Read(ctx, env, in.FilePath)
	if err != nil {
		return tool.Result{}, err
	}
	var at servers.Position
	if lspOperations[op] {
		if at, err = language.Position("lsp", doc, in.Line, in.Character, in.Query); err != nil {
			return tool.Result{}, err
		}
	}
	c, done, err := language.Use(ctx, env, doc.Path)
	if err != nil {
		return tool.Result{}, err
	}
	defer done()
	slow := wording.TellIfSlow(env, "Waiting for "+c.Name())
	defer slow()
	v := language.NewView(env, doc.Path)
	v.Knows(doc)
	a := &lspAnswer{ctx: ctx, v: v}
	if err := a.ask(c, op, doc, at, in.Query); err != nil {
		return tool.Result{}, language.Refusal(ctx, c.Name(), err)
	}
	return a.result(), nil
}

// lspSymbols asks all servers of the workspace for symbols.
func lspSymbols(ctx context.Context, env tool.Env, in lspInput) (tool.Result, error) {
	all, done, err := language.UseAll(ctx, env)
	if err != nil {
		return tool.Result{}, err
	}
	defer done()
	a := &lspAnswer{ctx: ctx, v: language.NewView(env, "")}
	var failed []error
	for _, c := range all {
		if err := a.ask(c, "workspaceSymbol", servers.Document{}, servers.Position{}, in.Query); err != nil {
			failed = append(failed, language.Refusal(ctx, c.Name(), err))
		}
	}
	if len(failed) == len(all) && len(all) > 0 {
		return tool.Result{}, failed[0]
	}
	r := a.result()
	for _, err := range failed {
		r.Text += "\n(Not all servers answered. " + err.Error() + ")"
	}
	return r, nil
}

// A lspAnswer gathers what a server says.
type lspAnswer struct {
	ctx   context.Context //nolint:containedctx // of the one call whose answer it is
	v     *language.View
	lines []string
	none  string
	total int
	left  int // places that rules keep from the call
}

func (a *lspAnswer) ask(c *servers.Client, op string, doc servers.Document, at servers.Position, query string) error {
	ctx := a.ctx
	var places []servers.Location
	var symbols []servers.Symbol
	var near []servers.Neighbour
	var err error
	switch op {
	case "goToDefinition":
		a.none = "No definition found."
		places, err = c.Definition(ctx, doc, at)
	case "findReferences":
		a.none = "No references found."
		places, err = c.References(ctx, doc, at)
	case "goToImplementation":
		a.none = "No implementations found."
		places, err = c.Implementation(ctx, doc, at)
	case "documentSymbol":
		a.none = "No symbols found."
		symbols, err = c.Outline(ctx, doc)
	case "workspaceSymbol":
		a.none = "No symbols found."
		symbols, err = c.Symbols(ctx, query)
	case "prepareCallHierarchy":
		a.none = "Nothing that can be called is there."
		symbols, err = c.Callable(ctx, doc, at)
	case "incomingCalls":
		a.none = "No calls found."
		near, err = c.Callers(ctx, doc, at)
	case "outgoingCalls":
		a.none = "No calls found."
		near, err = c.Callees(ctx, doc, at)
	case "hover":
		a.none = "The server says nothing about this place."
		return a.hover(c, doc, at)
	case "diagnostics":
		a.none = "No problems found."
		return a.problems(c, doc)
	}
	if err != nil {
		return err
	}
	for _, l := range places {
		a.place(l, a.v.Line(ctx, l.Path, l.At.Line))
	}
	for _, s := range symbols {
		a.place(s.Location, strings.Repeat("  ", s.Depth)+lspNamed(s))
	}
	for _, n := range near {
		a.neighbour(n)
	}
	return nil
}

// lspNamed is a symbol in words, as `function main (package x)`.
func lspNamed(s servers.Symbol) string {
	text := s.Kind + " " + wording.LineOf(s.Name, 200)
	if s.In != "" && s.Depth == 0 {
		text += " (" + wording.LineOf(s.In, 100) + ")"
	}
	return text
}

// place adds a line, if the call may see the file.
func (a *lspAnswer) place(l servers.Location, text string) {
	if !a.v.Sees(l.Path) {
		a.left++
		return
	}
	if a.total++; a.total > maxPlaces {
		return
	}
	a.lines = append(a.lines, strings.TrimRight(fmt.Sprintf("%s:%d:%d %s", a.v.Name(l.Path), l.At.Line+1,
		l.At.Character+1, text), " "))
}

// neighbour adds who calls or is called, with the lines of the calls.
func (a *lspAnswer) neighbour(n servers.Neighbour) {
	var lines []string
	for _, c := range n.Calls {
		if !a.v.Sees(c.Path) {
			a.left++
			return
		}
		lines = append(lines, fmt.Sprint(c.At.Line+1))
	}
	text := lspNamed(n.Symbol)
	if len(lines) > 0 {
		text += ", calls at " + a.v.Name(n.Calls[0].Path) + ":" + strings.Join(lines[:min(len(lines), 20)], ",")
	}
	a.place(n.Location, text)
}

// hover adds what the server says of a name, if it is not defined where the call may not look.
func (a *lspAnswer) hover(c *servers.Client, doc servers.Document, at servers.Position) error {
	if a.v.Ruled() {
		from, err := c.Definition(a.ctx, doc, at)
		if _, refused := errors.AsType[*servers.RequestError](err); err != nil && !refused {
			return err
		}
		if slices.ContainsFunc(from, func(l servers.Location) bool { return !a.v.Sees(l.Path) }) {
			a.left++
			return nil
		}
	}
	text, err := c.Hover(a.ctx, doc, at)
	if err != nil || text == "" {
		return err
	}
	shown, _ := results.Show(text)
	a.lines, a.total = []string{shown}, 1
	return nil
}

var lspSeverities = map[int]string{1: "error", 2: "warning", 3: "information", 4: "hint"}

// problems adds what is wrong with a file, errors first.
func (a *lspAnswer) problems(c *servers.Client, doc servers.Document) error {
	all, err := c.Problems(a.ctx, doc)
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(p, q servers.Problem) int { return p.Severity - q.Severity })
	for _, p := range all {
		text := lspSeverities[p.Severity] + ": " + language.Message(p)
		if about := strings.TrimSpace(p.Source + " " + p.Code); about != "" {
			text += " (" + wording.LineOf(about, 60) + ")"
		}
		a.place(servers.Location{Path: doc.Path, At: servers.Position{Line: p.Line, Character: p.Character}}, text)
	}
	return nil
}

func (a *lspAnswer) result() tool.Result {
	lines := a.lines
	if len(lines) == 0 {
		lines = []string{a.none}
	}
	if more := a.total - maxPlaces; more > 0 {
		lines = append(lines, fmt.Sprintf("(%d more are not shown.)", more))
	}
	if a.left > 0 {
		lines = append(lines, "(Places in files that rules keep from this call are left out.)")
	}
	return tool.Result{Text: strings.Join(lines, "\n"), Meta: tool.Meta{Data: wording.Data(struct {
		Places int `json:"places"`
	}{a.total})}}
}
