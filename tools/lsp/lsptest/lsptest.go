// Package lsptest is a language server for tests, of a language of its own. Files end in .toy, and have three kinds of
// lines: `fn NAME` defines a name, `  call NAME` uses one in the function above it, and `import NAME` is in order where
// imports are sorted. Using a name that no file defines is an error. All answers follow from the contents that the
// server was told or finds on the disk, so a test that has the right answer knows that the server was told everything.
package lsptest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf16"
)

// How says how a server behaves, besides as it should. The zero value is a good server whose diagnostics are asked for.
type How struct {
	Push      bool            // it publishes diagnostics, with versions
	Anonymous bool            // and without them
	Crash     string          // method at which it ends
	Hang      string          // method that it never answers
	Deaf      string          // method after which it reads nothing any more
	Flood     bool            // it asks and tells without end
	Pause     time.Duration   // between two messages of a flood
	Huge      bool            // its first answer is too large
	Garbage   bool            // it does not speak the protocol
	Slow      bool            // it gives diagnostics only once Go is closed; nil: never
	Reads     bool            // it knows nothing, and says so, until Go is closed; nil: never
	Command   bool            // it organizes imports by a command
	Hidden    bool            // likewise, and does not offer that as an action
	Files     bool            // a rename also renames a file
	Go        <-chan struct{} `json:"-"`
}

// Text writes How, for a variable of a process.
func (h How) Text() string {
	b, _ := json.Marshal(h)
	return string(b)
}

// Parse reads what Text wrote.
func Parse(text string) (h How) {
	_ = json.Unmarshal([]byte(text), &h) // of a test's own text
	return h
}

// A server is one conversation.
type server struct {
	How
	mu   sync.Mutex
	out  io.Writer
	root string
	open map[string]string // text by path
	disk map[string]string
	at   map[string]int // version by path
	next int
	over atomic.Bool // its input has ended
	work sync.WaitGroup
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

type position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type place struct {
	Start position `json:"start"`
	End   position `json:"end"`
}

// Serve answers until its input ends, or it does.
func Serve(in io.Reader, out io.Writer, h How) {
	s := &server{How: h, out: out, open: map[string]string{}, disk: map[string]string{}, at: map[string]int{}}
	defer s.work.Wait()
	defer s.over.Store(true)
	if h.Garbage {
		_, _ = io.WriteString(out, "Welcome to toy 1.0!\n\n")
		_, _ = io.Copy(io.Discard, in)
		return
	}
	r := bufio.NewReader(in)
	for {
		m, err := read(r)
		if err != nil || m.Method == "exit" || h.Crash != "" && m.Method == h.Crash {
			return
		}
		if h.Deaf != "" && m.Method == h.Deaf {
			select {} // leaktest ends the process
		}
		if h.Hang == m.Method && m.Method != "" {
			continue
		}
		s.handle(m)
	}
}

func read(r *bufio.Reader) (m message, err error) {
	size := 0
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return m, err
		}
		line = strings.TrimSpace(line)
		if line == "" {
			break
		}
		if v, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			size, _ = strconv.Atoi(v)
		}
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return m, err
	}
	return m, json.Unmarshal(body, &m)
}

func (s *server) send(v any) {
	body, _ := json.Marshal(v)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintf(s.out, "Content-Length: %d\r\n\r\n%s", len(body), body)
}

func (s *server) notify(method string, params any) {
	s.send(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

func (s *server) ask(method string, params any) {
	s.next++
	s.send(map[string]any{"jsonrpc": "2.0", "id": fmt.Sprintf("s%d", s.next), "method": method, "params": params})
}

func pathOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return ""
	}
	return filepath.FromSlash(u.Path)
}

func uriOf(path string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}

// text is the content of a file as the server knows it.
func (s *server) text(path string) string {
	if t, ok := s.open[path]; ok {
		return t
	}
	return s.disk[path]
}

// all are the files that the server knows, sorted.
func (s *server) all() (paths []string) {
	for path := range s.disk {
		paths = append(paths, path)
	}
	for path := range s.open {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// A word is a name in a file.
type word struct {
	path string
	at   place
	name string
	kind string // fn, call, import
	in   string // the function around it
}

func units(s string) int { return len(utf16.Encode([]rune(s))) }

func (s *server) words(path string) (all []word) {
	in := ""
	for n, line := range strings.Split(s.text(path), "\n") {
		line = strings.TrimRight(line, "\r")
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "fn" && fields[0] != "call" && fields[0] != "import" {
			continue
		}
		// what stands before the name, as a comment in slashes, moves it
		col := units(line[:strings.LastIndex(line, fields[len(fields)-1])])
		name := fields[len(fields)-1]
		if fields[0] == "fn" {
			in = name
		}
		all = append(all, word{path, place{position{n, col}, position{n, col + units(name)}}, name, fields[0], in})
	}
	return all
}

func (s *server) everything() (all []word) {
	for _, path := range s.all() {
		all = append(all, s.words(path)...)
	}
	return all
}

// under is the word at a position.
func (s *server) under(path string, p position) (word, bool) {
	for _, w := range s.words(path) {
		if w.at.Start.Line == p.Line && w.at.Start.Character <= p.Character && p.Character <= w.at.End.Character {
			return w, true
		}
	}
	return word{}, false
}

// uses are all places of a name.
func (s *server) uses(name, kind string) (all []word) {
	for _, w := range s.everything() {
		if w.name == name && (kind == "" || w.kind == kind) && w.kind != "import" {
			all = append(all, w)
		}
	}
	return all
}

func locations(words []word) []any {
	out := []any{}
	for _, w := range words {
		out = append(out, map[string]any{"uri": uriOf(w.path), "range": w.at})
	}
	return out
}

func (s *server) problems(path string) []any {
	out := []any{}
	for _, w := range s.words(path) {
		if w.kind == "call" && len(s.uses(w.name, "fn")) == 0 {
			out = append(out, map[string]any{"range": w.at, "severity": 1, "source": "toy", "message": "undefined: " + w.name})
		}
		if w.kind == "import" && strings.ToUpper(w.name) == w.name {
			out = append(out, map[string]any{"range": w.at, "severity": 2, "code": "loud", "message": w.name + " is loud"})
		}
	}
	return out
}

func (s *server) publish() {
	if !s.Push && !s.Anonymous {
		return
	}
	for path := range s.open {
		p := map[string]any{"uri": uriOf(path), "diagnostics": s.problems(path)}
		if !s.Anonymous {
			p["version"] = s.at[path]
		}
		s.notify("textDocument/publishDiagnostics", p)
	}
}

// read reads all files of the root.
func (s *server) read() {
	s.disk = map[string]string{}
	_ = filepath.WalkDir(s.root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && filepath.Ext(path) == ".toy" {
			b, _ := os.ReadFile(path)
			s.disk[path] = strings.TrimPrefix(string(b), "\ufeff")
		}
		return nil
	})
}

type params struct {
	RootPath string `json:"rootPath"`
	Document struct {
		URI     string `json:"uri"`
		Version int    `json:"version"`
		Text    string `json:"text"`
	} `json:"textDocument"`
	Position position                `json:"position"`
	Contents []struct{ Text string } `json:"contentChanges"`
	Changes  []struct{ URI string }  `json:"changes"`
	NewName  string                  `json:"newName"`
	Query    string                  `json:"query"`
	Item     struct{ Name string }   `json:"item"`
	Command  string                  `json:"command"`
	Args     []string                `json:"arguments"`
	Context  struct{ Only []string } `json:"context"`
}

func (s *server) handle(m message) {
	var p params
	_ = json.Unmarshal(m.Params, &p)
	path := pathOf(p.Document.URI)
	switch m.Method {
	case "textDocument/didOpen":
		s.open[path], s.at[path] = p.Document.Text, p.Document.Version
		s.publish()
	case "textDocument/didChange":
		s.open[path], s.at[path] = p.Contents[0].Text, p.Document.Version
		s.publish()
	case "textDocument/didClose":
		delete(s.open, path)
	case "workspace/didChangeWatchedFiles":
		for _, c := range p.Changes { // no more than it was told
			file := pathOf(c.URI)
			b, err := os.ReadFile(file)
			if delete(s.disk, file); err == nil {
				s.disk[file] = strings.TrimPrefix(string(b), "\ufeff")
			}
		}
		s.publish()
	}
	if m.ID == nil || m.Method == "" {
		return
	}
	if m.Method == "textDocument/diagnostic" && s.Slow {
		if s.Go == nil {
			return
		}
		items := s.problems(path)
		go func() {
			<-s.Go
			s.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": map[string]any{"kind": "full", "items": items}})
		}()
		return
	}
	result, err := s.answer(m.Method, p, path)
	if err != "" {
		s.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": -32603, "message": err}})
		return
	}
	s.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
	if m.Method == "initialize" {
		s.began()
	}
}

// began is what a server does after it was told hello.
func (s *server) began() {
	if s.Reads {
		s.notify("experimental/serverStatus", map[string]any{"health": "ok", "quiescent": false})
		go func() {
			<-s.Go
			s.notify("experimental/serverStatus", map[string]any{"health": "ok", "quiescent": true})
		}()
	}
	s.ask("client/registerCapability", map[string]any{"registrations": []any{map[string]any{"id": "1", "method": "workspace/didChangeWatchedFiles"}}})
	s.ask("workspace/configuration", map[string]any{"items": []any{map[string]any{"section": "toy"}}})
	if s.Flood {
		s.work.Go(func() {
			for !s.over.Load() {
				s.ask("workspace/configuration", map[string]any{"items": []any{map[string]any{"section": "toy"}}})
				s.notify("window/logMessage", map[string]any{"type": 3, "message": strings.Repeat("x", 1000)})
				<-time.After(s.Pause)
			}
		})
	}
}

func (s *server) answer(method string, p params, path string) (result any, problem string) {
	w, found := s.under(path, p.Position)
	switch method {
	case "initialize":
		s.root = p.RootPath
		s.read()
		able := map[string]any{"textDocumentSync": 1, "executeCommandProvider": map[string]any{"commands": []string{"toy.sort"}}}
		if !s.Push && !s.Anonymous {
			able["diagnosticProvider"] = map[string]any{"interFileDependencies": true, "workspaceDiagnostics": false}
		}
		if s.Huge {
			able["experimental"] = strings.Repeat("x", 40<<20)
		}
		return map[string]any{"capabilities": able}, ""
	case "textDocument/definition":
		if !found {
			return nil, ""
		}
		return locations(s.uses(w.name, "fn")), ""
	case "textDocument/implementation":
		links := []any{}
		for _, u := range s.uses(w.name, "fn") {
			links = append(links, map[string]any{"targetUri": uriOf(u.path), "targetRange": u.at, "targetSelectionRange": u.at})
		}
		return links, ""
	case "textDocument/references":
		return locations(s.uses(w.name, "")), ""
	case "textDocument/hover":
		if !found {
			return nil, ""
		}
		return map[string]any{"contents": map[string]string{"kind": "markdown", "value": "```toy\nfn " + w.name + "\n```"}}, ""
	case "textDocument/documentSymbol":
		out := []any{}
		for _, w := range s.words(path) {
			if w.kind == "fn" {
				out = append(out, map[string]any{"name": w.name, "kind": 12, "range": w.at, "selectionRange": w.at})
			}
		}
		return out, ""
	case "workspace/symbol":
		out := []any{}
		for _, w := range s.everything() {
			if w.kind == "fn" && strings.Contains(w.name, p.Query) {
				out = append(out, map[string]any{"name": w.name, "kind": 12, "location": map[string]any{"uri": uriOf(w.path), "range": w.at}})
			}
		}
		return out, ""
	case "textDocument/diagnostic":
		return map[string]any{"kind": "full", "items": s.problems(path)}, ""
	}
	return s.answerMore(method, p, path, w, found)
}

func (s *server) answerMore(method string, p params, path string, w word, found bool) (result any, problem string) {
	item := func(w word) map[string]any {
		return map[string]any{"name": w.name, "kind": 12, "uri": uriOf(w.path), "range": w.at, "selectionRange": w.at, "detail": filepath.Base(w.path)}
	}
	switch method {
	case "textDocument/prepareCallHierarchy":
		out := []any{}
		for _, u := range s.uses(w.name, "fn") {
			out = append(out, item(u))
		}
		return out, ""
	case "callHierarchy/incomingCalls", "callHierarchy/outgoingCalls":
		out := []any{}
		for _, u := range s.everything() {
			if u.kind != "call" {
				continue
			}
			if method == "callHierarchy/incomingCalls" && u.name == p.Item.Name {
				for _, from := range s.uses(u.in, "fn") {
					out = append(out, map[string]any{"from": item(from), "fromRanges": []any{u.at}})
				}
			}
			if method == "callHierarchy/outgoingCalls" && u.in == p.Item.Name {
				for _, to := range s.uses(u.name, "fn") {
					out = append(out, map[string]any{"to": item(to), "fromRanges": []any{u.at}})
				}
			}
		}
		return out, ""
	case "textDocument/rename":
		if !found {
			return nil, "no identifier here"
		}
		return s.rename(w.name, p.NewName), ""
	case "textDocument/codeAction":
		if !slices.Contains(p.Context.Only, "source.organizeImports") {
			return []any{}, ""
		}
		if s.Hidden {
			return []any{}, ""
		}
		if s.Command {
			return []any{map[string]any{"title": "Sort", "command": "toy.sort", "arguments": []string{path}}}, ""
		}
		return []any{map[string]any{"title": "Sort", "kind": "source.organizeImports", "edit": map[string]any{
			"changes": map[string]any{uriOf(path): s.sorted(path)}}}}, ""
	case "workspace/executeCommand":
		path := p.Args[0]
		if s.Hidden {
			path = pathOf(path)
		}
		s.ask("workspace/applyEdit", map[string]any{"edit": map[string]any{"changes": map[string]any{uriOf(path): s.sorted(path)}}})
		return nil, ""
	case "shutdown":
		return nil, ""
	}
	return nil, "there is no method " + method
}

func (s *server) rename(name, to string) any {
	by, order := map[string][]any{}, []string{}
	for _, u := range s.uses(name, "") {
		if by[u.path] == nil {
			order = append(order, u.path)
		}
		by[u.path] = append(by[u.path], map[string]any{"range": u.at, "newText": to})
	}
	changes := []any{}
	for _, path := range order {
		changes = append(changes, map[string]any{"textDocument": map[string]any{"uri": uriOf(path), "version": nil}, "edits": by[path]})
	}
	if s.Files {
		changes = append(changes, map[string]any{"kind": "rename", "oldUri": uriOf(s.root + "/a.toy"), "newUri": uriOf(s.root + "/b.toy")})
	}
	return map[string]any{"documentChanges": changes}
}

// sorted are edits that put the imports of a file in order.
func (s *server) sorted(path string) []any {
	var names []string
	var at []place
	for _, w := range s.words(path) {
		if w.kind == "import" {
			names, at = append(names, w.name), append(at, w.at)
		}
	}
	slices.Sort(names)
	edits := []any{}
	for i, name := range names {
		edits = append(edits, map[string]any{"range": at[i], "newText": name})
	}
	return edits
}
