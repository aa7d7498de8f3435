package request

import (
	"log/slog"

	"codehand/server/clients"
	"codehand/server/jsonrpc"
	"codehand/server/resources"
	"codehand/server/sessions"
	"codehand/tools/results"
	"codehand/tools/session"
)

// A Turn is what changes while one Request is served. It belongs to the goroutine of its Work.
type Turn struct {
	Req     Request
	State   *session.State         // a copy, so that the turn may set Client and Space; nil: it needs no session
	Failure *jsonrpc.Error         // takes the place of mcp-go's answer
	Said    *sessions.ClientRecord // what initialize said, if it succeeded
	Profile clients.Profile        // of the client; zero until mcpgo.Gateway.ClientOf has found it
}

// View is the caller's session for resources and prompts.
func (t *Turn) View() resources.View { return resources.View{State: t.State, Tenant: t.Req.Tenant} }

// maxRootName bounds what the log shows of a root that a client names, in characters.
const maxRootName = 200

// Narrow takes from the roots of a state what the client does not want to be used.
func (r Request) Narrow(st *session.State, log *slog.Logger) {
	narrowed, ignored := r.Client.Roots.Narrow(r.Tenant, st.Space)
	for _, root := range ignored {
		log.Warn("a root that the client names has nothing in common with the configured ones and is ignored",
			"root", results.Line(root, maxRootName))
	}
	if narrowed != st.Space {
		parts := narrowed.Roots()
		st.Space, st.Rules, st.Clean = narrowed, st.Rules.AlsoFrom(parts), st.Clean.AlsoFrom(parts)
	}
}
