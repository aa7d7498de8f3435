package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/charmbracelet/x/powernap/pkg/lsp/protocol"
)

// A Document is a file with the content that a request is about.
type Document struct {
	Path string // canonical
	Text string // as Text returns it
}

// A Position is a place in a file, from 0; Character is in UTF-16 units.
type Position struct{ Line, Character int }

func (p Position) wire() protocol.Position {
	return protocol.Position{Line: uint32(p.Line), Character: uint32(p.Character)} //nolint:gosec // a caller's check
}

func at(p protocol.Position) Position { return Position{int(p.Line), int(p.Character)} }

// A Location is a place that a server named.
type Location struct {
	Path string
	At   Position
}

// A Symbol is a name that a server told of.
type Symbol struct {
	Location
	Name, Kind, In string // Kind is lower case; In is what contains it, "": nothing
	Depth          int    // in the outline of a file
}

// A Neighbour is who calls, or is called, and where.
type Neighbour struct {
	Symbol
	Calls []Location // where it calls, or is called from
}

// maxAnswers is how many places of one answer are kept.
const maxAnswers = 10_000

// about makes the server's documents equal to the disk and to doc, and sends a request about it. All of that and the
// answer take at most 30 s. Errors: a *RequestError, ErrTime, ErrLost, or that of ctx.
func (c *Client) about(ctx context.Context, doc Document, method string, more map[string]any, result any) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	params := map[string]any{"textDocument": map[string]any{"uri": uriOf(doc.Path)}}
	for key, value := range more {
		params[key] = value
	}
	for {
		if err := c.take(ctx); err != nil {
			return c.failure(ctx, err)
		}
		err := c.docs.refresh(ctx, doc.Path)
		if err == nil {
			err = c.docs.set(ctx, doc.Path, doc.Text, stamp{})
		}
		var wait func(any) error
		if err == nil {
			wait, err = c.send(ctx, method, params)
		}
		c.leave()
		if err == nil {
			err = wait(result)
		}
		if e, ok := errors.AsType[*RequestError](err); ok && (e.Code == contentModified || e.Code == serverCancelled) &&
			pause(ctx) {
			continue
		}
		if err != nil {
			return c.failure(ctx, err)
		}
		return nil
	}
}

// Definition returns where the name at a place is defined.
func (c *Client) Definition(ctx context.Context, doc Document, p Position) ([]Location, error) {
	return c.places(ctx, doc, "textDocument/definition", map[string]any{"position": p.wire()})
}

// Implementation returns what implements the name at a place.
func (c *Client) Implementation(ctx context.Context, doc Document, p Position) ([]Location, error) {
	return c.places(ctx, doc, "textDocument/implementation", map[string]any{"position": p.wire()})
}

// References returns who uses the name at a place, with its declaration.
func (c *Client) References(ctx context.Context, doc Document, p Position) ([]Location, error) {
	return c.places(ctx, doc, "textDocument/references", map[string]any{"position": p.wire(),
		"context": map[string]bool{"includeDeclaration": true}})
}

func (c *Client) places(ctx context.Context, doc Document, method string, more map[string]any) ([]Location, error) {
	var raw json.RawMessage
	if err := c.about(ctx, doc, method, more, &raw); err != nil {
		return nil, err
	}
	return locations(raw)
}

// locations reads a place, a list of places, or a list of links to places.
func locations(raw json.RawMessage) ([]Location, error) {
	type place struct {
		URI             protocol.DocumentURI `json:"uri"`
		Range           protocol.Range       `json:"range"`
		TargetURI       protocol.DocumentURI `json:"targetUri"`
		TargetSelection protocol.Range       `json:"targetSelectionRange"`
	}
	var all []place
	if text := strings.TrimSpace(string(raw)); strings.HasPrefix(text, "{") {
		all = make([]place, 1)
		if err := json.Unmarshal(raw, &all[0]); err != nil {
			return nil, errUnreadable
		}
	} else if err := json.Unmarshal(raw, &all); err != nil {
		return nil, errUnreadable
	}
	var out []Location
	seen := map[Location]bool{}
	for _, p := range all {
		l := Location{pathOf(p.URI), at(p.Range.Start)}
		if p.TargetURI != "" {
			l = Location{pathOf(p.TargetURI), at(p.TargetSelection.Start)}
		}
		if l.Path != "" && !seen[l] && len(out) < maxAnswers {
			seen[l] = true
			out = append(out, l)
		}
	}
	return out, nil
}

var errUnreadable = errors.New("its answer cannot be read")

// Hover returns what the server says of the name at a place, as Markdown; "": nothing.
func (c *Client) Hover(ctx context.Context, doc Document, p Position) (string, error) {
	var got *struct {
		Contents json.RawMessage `json:"contents"`
	}
	if err := c.about(ctx, doc, "textDocument/hover", map[string]any{"position": p.wire()}, &got); err != nil {
		return "", err
	}
	if got == nil {
		return "", nil
	}
	return markup(got.Contents), nil
}

// markup reads a text in one of the forms that hovers have.
func markup(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return strings.TrimSpace(text)
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		var parts []string
		for _, part := range list {
			if s := markup(part); s != "" {
				parts = append(parts, s)
			}
		}
		return strings.Join(parts, "\n\n")
	}
	var one struct{ Kind, Language, Value string }
	if json.Unmarshal(raw, &one) != nil {
		return ""
	}
	if one.Language != "" {
		return "```" + one.Language + "\n" + one.Value + "\n```"
	}
	return strings.TrimSpace(one.Value)
}

// A symbol is one of either form that the protocol has.
type symbol struct {
	Name      string              `json:"name"`
	Kind      protocol.SymbolKind `json:"kind"`
	Container string              `json:"containerName"`
	Selection *protocol.Range     `json:"selectionRange"`
	Children  []symbol            `json:"children"`
	Location  *protocol.Location  `json:"location"`
}

// Outline returns the symbols of a file, in their order there.
func (c *Client) Outline(ctx context.Context, doc Document) ([]Symbol, error) {
	var got []symbol
	if err := c.about(ctx, doc, "textDocument/documentSymbol", nil, &got); err != nil {
		return nil, err
	}
	var out []Symbol
	var add func(all []symbol, in string, depth int)
	add = func(all []symbol, in string, depth int) {
		for _, s := range all {
			if len(out) >= maxAnswers || depth > 50 {
				return
			}
			x := Symbol{Location: Location{Path: doc.Path}, Name: s.Name, Kind: kindOf(s.Kind), In: in, Depth: depth}
			if s.Selection != nil {
				x.At = at(s.Selection.Start)
			} else if s.Location != nil {
				x.At, x.In = at(s.Location.Range.Start), s.Container
			}
			out = append(out, x)
			add(s.Children, s.Name, depth+1)
		}
	}
	add(got, "", 0)
	return out, nil
}

func kindOf(k protocol.SymbolKind) string {
	if name := protocol.TableKindMap[k]; name != "" {
		return strings.ToLower(name)
	}
	return "symbol"
}

// Symbols returns symbols of the whole root whose names fit a query.
func (c *Client) Symbols(ctx context.Context, query string) ([]Symbol, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	if err := c.take(ctx); err != nil {
		return nil, c.failure(ctx, err)
	}
	err := c.docs.refresh(ctx)
	c.leave()
	if err != nil {
		return nil, c.failure(ctx, err)
	}
	var got []symbol
	if err := c.call(ctx, "workspace/symbol", map[string]any{"query": query}, &got); err != nil {
		return nil, err
	}
	var out []Symbol
	for _, s := range got {
		if s.Location == nil || pathOf(s.Location.URI) == "" || len(out) >= maxAnswers {
			continue
		}
		out = append(out, Symbol{Location: Location{pathOf(s.Location.URI), at(s.Location.Range.Start)}, Name: s.Name,
			Kind: kindOf(s.Kind), In: s.Container})
	}
	return out, nil
}

// An item is a function in the hierarchy of calls, as the server wants it back.
type item struct {
	Name      string               `json:"name"`
	Kind      protocol.SymbolKind  `json:"kind"`
	Detail    string               `json:"detail"`
	URI       protocol.DocumentURI `json:"uri"`
	Selection protocol.Range       `json:"selectionRange"`
}

func (i item) symbol() Symbol {
	return Symbol{Location: Location{pathOf(i.URI), at(i.Selection.Start)}, Name: i.Name, Kind: kindOf(i.Kind),
		In: i.Detail}
}

// Callable returns the functions at a place, of which Callers and Callees can be asked.
func (c *Client) Callable(ctx context.Context, doc Document, p Position) ([]Symbol, error) {
	_, all, err := c.callable(ctx, doc, p)
	return all, err
}

func (c *Client) callable(ctx context.Context, doc Document, p Position) ([]json.RawMessage, []Symbol, error) {
	var raw []json.RawMessage
	err := c.about(ctx, doc, "textDocument/prepareCallHierarchy", map[string]any{"position": p.wire()}, &raw)
	if err != nil {
		return nil, nil, err
	}
	var all []Symbol
	for _, r := range raw {
		var i item
		if json.Unmarshal(r, &i) != nil {
			return nil, nil, errUnreadable
		}
		all = append(all, i.symbol())
	}
	return raw, all, nil
}

// Callers returns who calls the function at a place.
func (c *Client) Callers(ctx context.Context, doc Document, p Position) ([]Neighbour, error) {
	return c.neighbours(ctx, doc, p, "callHierarchy/incomingCalls")
}

// Callees returns what the function at a place calls.
func (c *Client) Callees(ctx context.Context, doc Document, p Position) ([]Neighbour, error) {
	return c.neighbours(ctx, doc, p, "callHierarchy/outgoingCalls")
}

func (c *Client) neighbours(ctx context.Context, doc Document, p Position, method string) ([]Neighbour, error) {
	items, of, err := c.callable(ctx, doc, p)
	if err != nil {
		return nil, err
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	var out []Neighbour
	for i, raw := range items {
		var got []struct {
			From   *item            `json:"from"`
			To     *item            `json:"to"`
			Ranges []protocol.Range `json:"fromRanges"`
		}
		if err := c.call(ctx, method, map[string]any{"item": raw}, &got); err != nil {
			return nil, err
		}
		for _, g := range got {
			other, in := g.From, of[i].Path
			if other == nil {
				other = g.To
			} else {
				in = pathOf(other.URI)
			}
			if other == nil || pathOf(other.URI) == "" || len(out) >= maxAnswers {
				continue
			}
			n := Neighbour{Symbol: other.symbol()}
			for _, r := range g.Ranges {
				n.Calls = append(n.Calls, Location{in, at(r.Start)})
			}
			out = append(out, n)
		}
	}
	return out, nil
}

// Problems returns all that the server says of a file with exactly this content. The error is also ErrNoReport.
func (c *Client) Problems(ctx context.Context, doc Document) ([]Problem, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	if err := c.take(ctx); err != nil {
		return nil, c.failure(ctx, err)
	}
	err := c.docs.refresh(ctx, doc.Path)
	if err == nil {
		err = c.docs.set(ctx, doc.Path, doc.Text, stamp{})
	}
	version := int32(0)
	if err == nil {
		version = c.docs.open[doc.Path].version
	}
	c.leave()
	if err != nil {
		return nil, c.failure(ctx, err)
	}
	r, err := c.report(ctx, doc.Path, version)
	if err != nil {
		return nil, err
	}
	return r.Items, nil
}

// ErrNoReport means that the server does not say which content its diagnostics are about, so that none can be shown.
var ErrNoReport = errors.New("the server does not say which content its diagnostics are about")
