package doctor

import (
	"strings"

	"codehand/server/clients"
)

// An expanding replaces the variables of an entry as its client does.
type expanding struct {
	client  clients.Client
	by      clients.Surroundings
	unknown string // the first variable whose value only the client knows; "": none
}

// text replaces what the client replaces. What only the client knows stays, and is noted.
func (x *expanding) text(written string) string {
	text, unknown := x.client.Expand(x.by, written)
	if x.unknown == "" {
		x.unknown = unknown
	}
	return text
}

// surroundingsOf are what a client sees that is started on a machine, with the environment of this process.
func surroundingsOf(m Machine, project string) clients.Surroundings {
	lookup := func(name string) (value string, ok bool) {
		value = m.getenv(name)
		for _, entry := range m.Env {
			ok = ok || strings.HasPrefix(entry, name+"=")
		}
		return value, ok || value != "" // it may be set to nothing
	}
	return clients.Surroundings{Project: project, Home: m.Config.Home, Lookup: lookup}
}
