package toolset

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/cards"
	"codehand/server/clients"
	"codehand/server/jsonrpc"
	"codehand/tools/catalog"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// mounted begins the names of tools of mounted servers.
const mounted = "mcp__"

// Finder is the tool by which a model finds the others.
const Finder = "tool_search"

// Lists are what the operator says about lists of tools. The zero value is that of an operator who says nothing.
type Lists struct {
	Deferral string   // tools.deferral
	Always   []string // tools.always
	// PowerShell is the name of the PowerShell in which commands run; "": they run in bash, or in sh
	PowerShell string
}

// The values of tools.deferral that change something; "auto" leaves it to the client's profile.
const (
	deferralOn  = "on"
	deferralOff = "off"
)

// Defers says whether a tool is listed only where it was found, or where everything is.
func (l Lists) Defers(t tool.Tool) bool {
	return t.Spec.Deferred && !slices.ContainsFunc(l.Always, func(name string) bool { return GoesBy(t, name) })
}

// GoesBy says whether a tool has this name, or this alias, or is called so by another agent.
func GoesBy(t tool.Tool, name string) bool {
	return name == t.Spec.Name || slices.Contains(t.Spec.Aliases, catalog.Short(name))
}

// check refuses a name in tools.always that no tool has: nothing else would say that it is misspelt. Those of mounted
// servers are not known at the start.
func (l Lists) check(tools []tool.Tool) error {
	for _, name := range l.Always {
		if !strings.HasPrefix(name, mounted) &&
			!slices.ContainsFunc(tools, func(t tool.Tool) bool { return GoesBy(t, name) }) {
			return fmt.Errorf("tools.always: there is no tool %s", name)
		}
	}
	return nil
}

// showsAll says whether everything is listed for the clients of a profile.
func (l Lists) showsAll(p clients.Profile) bool {
	return l.Deferral == deferralOff || l.Deferral != deferralOn && p.DeferAll
}

// A Listing is one entry of tools/list.
type Listing struct {
	Name string
	// JSON returns the entry as it is sent. It is encoded when it is first listed and shared from then on: encoding the
	// whole list for each request took more time than everything else that is done for one.
	JSON func() (json.RawMessage, error)

	always      bool // also where not everything is listed
	forPatchers bool // as in its Spec
	button      bool // a card calls it

	carded func() (json.RawMessage, error) // the entry for clients that show cards; nil: it is the same
}

// list makes the entry of a tool. d must not change afterwards.
func list(t tool.Tool, d mcp.Tool, always bool) Listing {
	encode := func() (json.RawMessage, error) { return encodeTool(d) }
	l := Listing{
		Name: d.Name, JSON: sync.OnceValues(encode), always: always, forPatchers: t.Spec.ForPatchers,
		button: t.Spec.Card == tool.CardButton,
	}
	if t.Spec.Card != tool.NoCard {
		l.carded = sync.OnceValues(func() (json.RawMessage, error) {
			drawn := d
			mark(&drawn, cards.ToolMeta())
			return encodeTool(drawn)
		})
	}
	return l
}

// encodeTool is an entry of tools/list.
func encodeTool(d mcp.Tool) (json.RawMessage, error) {
	b, err := jsonrpc.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", d.Name, err)
	}
	return b, nil
}

// An Offer is what one kind of clients may use of a tenant. All their requests share it and only read it.
type Offer struct {
	Tools   []Listing       // of tools/list: those that are always listed, the others, and mounted ones, each by name
	Marked  []Listing       // the same with marks in _meta, for clients.Profile.Marks
	Hinted  []Listing       // the same with hints in the descriptions, for clients.Profile.Hints
	Catalog []catalog.Entry // what may be found, by name
}

// Listed is what tools/list shows to a client whose session has found the tools active. The order is that of all.
func (o Offer) Listed(c session.Client, known clients.Profile, active []string) []Listing {
	tools := o.Tools
	switch {
	case c.SeesAll && known.Hints:
		tools = o.Hinted
	case known.Marks:
		tools = o.Marked
	}
	if c.SeesAll {
		return shownTo(c, tools)
	}
	var listed []Listing
	if c.Modern && !c.Rereads {
		active = nil
	}
	for _, t := range tools {
		if t.always || c.Patches && t.forPatchers || c.Cards && t.button || slices.Contains(active, t.Name) {
			listed = append(listed, t)
		}
	}
	return shownTo(c, listed)
}

// shownTo says of the tools which results are drawn, if the client shows cards.
func shownTo(c session.Client, tools []Listing) []Listing {
	if !c.Cards {
		return tools
	}
	tools = slices.Clone(tools)
	for i, t := range tools {
		if t.carded != nil {
			tools[i].JSON = t.carded
		}
	}
	return tools
}

// Offer makes an offer of these tools. Clients that cannot be asked are told to ask themselves where a person must see
// a call.
func (l Lists) Offer(tools []tool.Tool, canAsk bool) Offer {
	tools = slices.SortedFunc(slices.Values(tools), l.order)
	o := Offer{Tools: make([]Listing, 0, len(tools))}
	for _, t := range tools {
		late := l.Defers(t)
		t = l.spoken(t)
		d := describe(t, late)
		if t.Spec.Personal && !canAsk {
			mark(&d, map[string]any{"anthropic/requiresUserInteraction": true})
		}
		o.Tools = append(o.Tools, list(t, d, !late))
		marked := d
		mark(&marked, marks(t, late))
		o.Marked = append(o.Marked, list(t, marked, !late))
		if late {
			words := append(slices.Clone(t.Spec.Aliases), t.Spec.Hint)
			d.Description = strings.TrimSpace(d.Description) + "\nAlso: " + strings.Join(words, ", ") + "."
		}
		o.Hinted = append(o.Hinted, list(t, d, !late))
		o.Catalog = append(o.Catalog, catalog.Entry{
			Name: t.Spec.Name, Aliases: t.Spec.Aliases, Elsewhere: t.Spec.Elsewhere,
			Description: t.Spec.Description, Hint: t.Spec.Hint, Deferred: late, Schema: t.Schema,
		})
	}
	slices.SortFunc(o.Catalog, func(a, b catalog.Entry) int { return strings.Compare(a.Name, b.Name) })
	return o
}

// spoken says in the text of a tool that runs commands in which shell they run, if that is not bash.
func (l Lists) spoken(t tool.Tool) tool.Tool {
	if l.PowerShell != "" && t.Spec.Family == permission.FamilyBash {
		t.Spec.Description = strings.ReplaceAll(t.Spec.Description, "bash command", l.PowerShell+" command") +
			"\nWrite for " + l.PowerShell + ": there is no bash here."
		t.Schema = json.RawMessage(strings.ReplaceAll(string(t.Schema), "bash command", l.PowerShell+" command"))
	}
	return t
}

// order is that of lists: what is always listed, then the deferred tools, then those of mounted servers, each by name.
// What changes while a client is connected stands behind what its model has in its cache.
func (l Lists) order(a, b tool.Tool) int {
	rank := func(t tool.Tool) int {
		switch {
		case strings.HasPrefix(t.Spec.Name, mounted):
			return 2
		case l.Defers(t):
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Spec.Name, b.Spec.Name))
}

// maxResultChars tells a client that cuts results itself to leave them to us: our longest result has 50,000
// characters, each at most two UTF-16 units.
const maxResultChars = 100_000

// describe is a tool as tools/list shows it. All four hints are explicit, because the defaults of the protocol are
// not those of our traits.
func describe(t tool.Tool, deferred bool) mcp.Tool {
	traits := t.Spec.Traits
	d := mcp.Tool{
		Name:           t.Spec.Name,
		Title:          t.Spec.Title,
		Description:    t.Spec.Description,
		RawInputSchema: t.Schema,
		Annotations: mcp.ToolAnnotation{
			ReadOnlyHint:    mcp.ToBoolPtr(traits.ReadOnly),
			DestructiveHint: mcp.ToBoolPtr(!traits.ReadOnly && !traits.Additive),
			IdempotentHint:  mcp.ToBoolPtr(traits.Idempotent),
			OpenWorldHint:   mcp.ToBoolPtr(!traits.Local),
		},
	}
	if deferred {
		mark(&d, map[string]any{"codehand/deferred": true})
	}
	return d
}

// marks are what clients with clients.Profile.Marks read in the _meta of a tool. Others pay for each byte of a list and
// read none of them.
func marks(t tool.Tool, deferred bool) map[string]any {
	meta := map[string]any{"anthropic/maxResultSizeChars": maxResultChars}
	switch {
	case deferred:
		meta["anthropic/searchHint"] = t.Spec.Hint
	case t.Spec.Name != Finder: // a client that obeys this has a search of its own
		meta["anthropic/alwaysLoad"] = true
	}
	return meta
}

// mark adds to the _meta of d, which it does not share afterwards.
func mark(d *mcp.Tool, meta map[string]any) {
	all := map[string]any{}
	if d.Meta != nil {
		maps.Copy(all, d.Meta.AdditionalFields)
	}
	maps.Copy(all, meta)
	d.Meta = &mcp.Meta{AdditionalFields: all}
}
