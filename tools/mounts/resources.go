package mounts

import (
	"context"
	"errors"
	"strings"
	"sync"

	"codehand/tools/mounts/upstream"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// Listed are the resources of one server; Err says why they are not known, in words for the model.
type Listed struct {
	Server string
	All    []upstream.Resource
	Left   int // how many are left out: they could not be read, or were too many
	Err    error
}

// notFound are the codes with which servers say that there is no such resource.
const (
	notFound   = -32002
	badParams  = -32602
	methodless = -32601
)

// Trusts says whether the operator trusts what a server says.
func (m *Mounts) Trusts(name string) bool {
	x := m.named(name)
	return x != nil && x.Trusted
}

// Own is the name under which tools know this server itself.
const Own = "codehand"

// Sentence names the mounted servers for the description of a tool, some of them; "": there are none.
func (m *Mounts) Sentence() string {
	names, more := m.Names(), ""
	if len(names) == 0 {
		return ""
	}
	if most := 20; len(names) > most {
		names, more = names[:most], " and others"
	}
	return " Mounted: " + strings.Join(names, ", ") + more + "."
}

// Check refuses the name of a server that there is not; "" and Own are none.
func (m *Mounts) Check(name string) error {
	if name == "" || name == Own || m.named(name) != nil {
		return nil
	}
	return tool.Refuse(tool.ServerUnknown, "Unknown server: %s. There are: %s.", wording.LineOf(name, 60),
		strings.Join(append([]string{Own}, m.Names()...), ", "))
}

// Ruled is what the rules of a session say about a server as a whole, as about one more tool of it that reads and
// reaches the network. mode says what holds where they say nothing.
func Ruled(s *session.State, server string, mode permission.Mode) permission.Decision {
	return s.Rules.Decide(permission.Request{
		Tool: prefix + server + "__resources", Family: permission.FamilyNone, ReadOnly: true, Own: permission.Allow,
		Mode: mode, Targets: []permission.Target{{Kind: permission.Domain, Value: prefix + server}},
	})
}

// named is the server of this name; nil: there is none.
func (m *Mounts) named(name string) *mount {
	if m == nil {
		return nil
	}
	for _, x := range m.all {
		if x.Name == name {
			return x
		}
	}
	return nil
}

// Resources asks these servers for their resources, at most most of each, all at the same time. It starts those that
// are not running, and waits for each as a call of one of its tools would, within ctx.
func (m *Mounts) Resources(ctx context.Context, env tool.Env, servers []string, most int) []Listed {
	all := make([]Listed, len(servers))
	var asked sync.WaitGroup
	for i, name := range servers {
		all[i].Server = name
		if x := m.named(name); x != nil {
			asked.Go(func() {
				all[i].All, all[i].Left, all[i].Err = x.resources(ctx, env, most)
			})
		}
	}
	asked.Wait()
	return all
}

func (x *mount) resources(ctx context.Context, env tool.Env, most int) (all []upstream.Resource, left int, err error) {
	ctx, limit, cancel := x.limited(ctx)
	defer cancel(nil)
	err = x.with(ctx, env, newCaller(env, limit), func(c *upstream.Conn) (err error) {
		all, left, err = c.Resources(ctx, most)
		return err
	})
	if err != nil {
		return nil, 0, x.refusal(ctx, "the list of its resources", err)
	}
	return all, left, nil
}

// ReadResource reads a resource of a server. All that is the server's stands between marks; what is no text is shown as
// an image or kept as a file. There must be a server of this name.
func (m *Mounts) ReadResource(ctx context.Context, env tool.Env, name, server, uri string) (tool.Result, error) {
	x := m.named(server)
	c := &call{mount: x, env: env, name: name}
	ctx, limit, cancel := x.limited(ctx)
	defer cancel(nil)
	var blocks []upstream.Block
	err := x.with(ctx, env, newCaller(env, limit), func(c *upstream.Conn) (err error) {
		blocks, err = c.Read(ctx, uri)
		return err
	})
	if e, ok := errors.AsType[*upstream.RemoteError](err); ok && ctx.Err() == nil &&
		(e.Code == notFound || e.Code == badParams || e.Code == methodless) {
		r := x.refusal(ctx, name, err)
		return tool.Result{}, tool.Refuse(tool.ResourceUnknown, "Server %s has no resource %s. %s", x.Name,
			wording.LineOf(uri, 200), "list_mcp_resources lists what it has.\n"+textOf(r))
	}
	if err != nil {
		return tool.Result{}, x.refusal(ctx, name, err)
	}
	return c.show(ctx, upstream.Answer{Blocks: blocks})
}

// textOf is the text of a refusal, without its code.
func textOf(err error) string {
	if r, ok := errors.AsType[*tool.Refusal](err); ok {
		return r.Text
	}
	return err.Error()
}

// with makes one request of a server, once more if it has forgotten the connection.
func (x *mount) with(ctx context.Context, env tool.Env, c *caller, do func(*upstream.Conn) error) error {
	l := x.link(env.Key)
	leave := l.enter(c)
	answered := false
	defer func() { leave(answered) }()
	done := wording.TellIfSlow(env, "waiting for the server "+x.Name)
	defer done()
	for again := true; ; again = false {
		conn, err := l.get(ctx)
		if err != nil {
			return err
		}
		err = do(conn)
		if errors.Is(err, upstream.ErrForgotten) && again {
			l.forget(conn)
			continue
		}
		answered = err == nil
		return err
	}
}
