package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/clients"
	"codehand/tools/catalog"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// list replaces what mcp-go would list: no aliases, nothing that is switched off, and of the deferred tools none, those
// that the session found, or all, by client and setting. What it leaves out stays callable, but for tools that a rule or
// the token forbids. In the modern era the list depends on the request and the configuration alone; in any, its bytes are
// the same as long as it holds the same tools.
func (s *Server) list(ctx context.Context, _ any, _ *mcp.ListToolsRequest, result *mcp.ListToolsResult) {
	rec := recordFrom(ctx)
	c := s.client(ctx, rec)
	var active []string
	if rec.shelf.Session != "" {
		var err error
		if active, err = s.active(rec.shelf).Load(ctx); err != nil { // the core is better than nothing, and every tool can still be called
			s.log.WarnContext(ctx, "the tools that a session found are not known: the core is listed", "err", err)
		}
	}
	ours := rec.place.offers(c.CanAsk).listed(c, active)
	if foreign := len(result.Tools) - len(s.table); foreign > 0 { // of Extend
		for _, t := range result.Tools {
			if _, known := s.table[t.Name]; !known {
				ours = append(slices.Clip(ours), t)
			}
		}
	}
	result.Tools = ours
}

// listsActive says whether the answer to a request is a list that depends on what its session has found.
func (r *record) listsActive() bool {
	return !r.modern && r.env.method == string(mcp.MethodToolsList)
}

// active is what a session has found, without opening it: nothing begins because a client lists.
func (s *Server) active(key session.Key) session.Cell[[]string] {
	return session.NewCell[[]string](s.memory(key), activeCell)
}

// activeCell names the value in which a session keeps the tools that it found.
const activeCell = "cell.active"

// unnamed is an envelope without what gives a single request a session of its own: tools/list brings none of it.
func (e envelope) unnamed() envelope {
	e.hasSession, e.hasThreadID = false, false
	return e
}

// named says that a request may have another session than its connection.
func (e envelope) named() bool { return e.hasSession || e.hasThreadID }

// shelve lists for the connection of a call what the call's own session has found, and says whether that changed its list.
func (s *Server) shelve(ctx context.Context, rec *record) (changed bool) {
	st := rec.state
	if rec.shelf.Session == "" || rec.shelf == st.Key || rec.aim.tool.Spec.Name != finder || st.Client.SeesAll {
		return false
	}
	found, err := st.Active.Load(ctx)
	if err == nil && len(found) > 0 {
		changed, err = session.Activate(ctx, s.active(rec.shelf), found)
	}
	if err != nil { // what is not listed can be called all the same
		s.log.WarnContext(ctx, "found tools do not join the list of a connection", "err", err)
	}
	return changed
}

// A lister is what the operator says about lists. The zero lister is that of somebody who says nothing.
type lister struct {
	deferral string   // tools.deferral
	always   []string // tools.always
}

// The values of tools.deferral.
const (
	deferralAuto = "auto"
	deferralOn   = "on"
	deferralOff  = "off"
)

// defers says whether a tool is listed only where it was found, or where everything is.
func (l lister) defers(t tool.Tool) bool {
	return t.Spec.Deferred && !slices.ContainsFunc(l.always, func(name string) bool { return goesBy(t, name) })
}

// goesBy says whether a tool has this name, or this alias.
func goesBy(t tool.Tool, name string) bool {
	return name == t.Spec.Name || slices.Contains(t.Spec.Aliases, name)
}

// check refuses a name in tools.always that no tool has: nothing else would say that it is misspelt. Those of mounted
// servers are not known at the start.
func (l lister) check(tools []tool.Tool) error {
	for _, name := range l.always {
		if !strings.HasPrefix(name, "mcp__") && !slices.ContainsFunc(tools, func(t tool.Tool) bool { return goesBy(t, name) }) {
			return fmt.Errorf("tools.always: there is no tool %s", name)
		}
	}
	return nil
}

// showsAll says whether everything is listed for the clients of a profile.
func (l lister) showsAll(p clients.Profile) bool {
	return l.deferral == deferralOff || l.deferral != deferralOn && p.DeferAll
}

// An offer is what one kind of clients may use in a place. It is shared by all their requests and only read.
type offer struct {
	tools   []mcp.Tool      // of tools/list: those that are always listed, then the others, each by name
	always  int             // how many are always listed
	catalog []catalog.Entry // what may be found, by name
}

// listed is what tools/list shows to a client whose session has found the tools active. The order is that of all.
func (o offer) listed(c session.Client, active []string) []mcp.Tool {
	if c.SeesAll {
		return o.tools
	}
	listed := slices.Clip(o.tools[:o.always])
	if c.Modern {
		return listed
	}
	for _, t := range o.tools[o.always:] {
		if slices.Contains(active, t.Name) {
			listed = append(listed, t)
		}
	}
	return listed
}

// offers are what is offered to clients that can be asked, or cannot.
func (p *place) offers(canAsk bool) offer {
	if canAsk {
		return p.asked
	}
	return p.unasked
}

// offer makes an offer of these tools. Clients that cannot be asked are told to ask themselves where a person must see a
// call.
func (l lister) offer(tools []tool.Tool, canAsk bool) offer {
	tools = slices.SortedFunc(slices.Values(tools), l.order)
	o := offer{tools: make([]mcp.Tool, 0, len(tools))}
	for _, t := range tools {
		late := l.defers(t)
		d := describeTool(t, late)
		if t.Spec.Personal && !canAsk {
			d.Meta.AdditionalFields["anthropic/requiresUserInteraction"] = true
		}
		o.tools = append(o.tools, d)
		if !late {
			o.always++
		}
		o.catalog = append(o.catalog, catalog.Entry{
			Name: t.Spec.Name, Aliases: t.Spec.Aliases, Description: t.Spec.Description, Hint: t.Spec.Hint,
			Deferred: late, Schema: t.Schema,
		})
	}
	slices.SortFunc(o.catalog, func(a, b catalog.Entry) int { return strings.Compare(a.Name, b.Name) })
	return o
}

// arrange makes the offers of a place, once.
func (s *Server) arrange(p *place) {
	cannot := *p.bare
	cannot.Client.CanAsk = false
	var all, unasked []tool.Tool
	for _, t := range s.tools {
		if p.off(t) {
			continue
		}
		all = append(all, t)
		if t.Unavailable(&cannot) == "" {
			unasked = append(unasked, t)
		}
	}
	p.asked, p.unasked = s.lists.offer(all, true), s.lists.offer(unasked, false)
}

// order is that of lists: what is always listed, then the deferred tools, each by name.
func (l lister) order(a, b tool.Tool) int {
	if late := l.defers(a); late != l.defers(b) {
		if late {
			return 1
		}
		return -1
	}
	return strings.Compare(a.Spec.Name, b.Spec.Name)
}

// Digest is the SHA-256, in hex, of what every client of a release is told before it calls anything: the entries of
// tools/list, if nothing is switched off, each on a line, and the instructions. It depends on nothing else, so a list that
// differs was changed by the operator's settings, or by nobody who should have.
func Digest(tools []tool.Tool) (string, error) {
	sum := sha256.New()
	for _, d := range (lister{}).offer(tools, true).tools {
		b, err := marshal(d)
		if err != nil {
			return "", fmt.Errorf("tool %s: %w", d.Name, err)
		}
		sum.Write(append(b, '\n'))
	}
	sum.Write([]byte(fullGuidance()))
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// off says that no session of this place can use the tool: a bare deny rule or the token forbids it, or its back-end is
// missing.
func (p *place) off(t tool.Tool) bool {
	return p.rules.Off(t.Spec.Name, t.Spec.Aliases, t.Spec.Family) || t.Unavailable(p.bare) != "" || p.forbids(t) != nil
}

// An Entry is one tool as tools/list shows it, for people.
type Entry struct {
	Tool     tool.Tool
	JSON     []byte // the entry of tools/list
	Deferred bool   // most clients are shown it only when it was found
}

// Tokens estimates what the entry costs in a model's context: bytes / 4.
func (e Entry) Tokens() int { return (len(e.JSON) + 3) / 4 }

// List returns all that tools/list shows to anybody, in its order.
func (s *Server) List() []Entry {
	all := s.local.asked
	entries := make([]Entry, 0, len(all.tools))
	for i, d := range all.tools {
		b, err := marshal(d)
		if err != nil {
			continue // the self-check refused to start with such a tool
		}
		late := i >= all.always && s.cfg.Tools.Deferral != deferralOff
		entries = append(entries, Entry{Tool: s.table[d.Name], JSON: b, Deferred: late})
	}
	return entries
}
