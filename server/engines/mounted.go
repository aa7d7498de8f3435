package engines

import (
	"context"
	"strings"

	"codehand/server/toolset"
	"codehand/tools/mounts"
)

// Mounted is a mounted server, for the person who set it up.
type Mounted struct {
	Tools   []toolset.Entry  // as tools/list would show them
	Changed []mounts.Altered // what the server describes in another way than when it was first used
}

// Mounted starts or reaches the mounted server of this name, and returns what offered shows of it. With accept a person
// accepts what has changed. The error says why the server cannot be used; part of that may be its own words.
func (e *Set) Mounted(ctx context.Context, name string, accept bool,
	offered func() []toolset.Entry) (Mounted, error) {
	if err := e.Mounts.Reach(ctx, name); err != nil {
		return Mounted{}, err
	}
	m := Mounted{Changed: e.Mounts.Changes(name)}
	if accept {
		if err := e.Mounts.Accept(ctx, name); err != nil {
			return Mounted{}, err
		}
	}
	e.Tools.Refresh() // what is left out is in the log
	for _, x := range offered() {
		if strings.HasPrefix(x.Tool.Spec.Name, "mcp__"+name+"__") {
			m.Tools = append(m.Tools, x)
		}
	}
	return m, nil
}
