package server

import (
	"context"
	"strings"

	"codehand/server/toolset"
	"codehand/tools/mounts"
)

// Mounted starts or reaches a mounted server and returns its tools, as tools/list would show them, and those that it
// describes in another way than when it was first used. With accept a person accepts these. The error says why the
// server cannot be used; part of that may be its own words.
func (s *Server) Mounted(ctx context.Context, name string, accept bool) (
	tools []toolset.Entry, changed []mounts.Altered, err error) {
	if err := s.engines.Mounts.Reach(ctx, name); err != nil {
		return nil, nil, err
	}
	changed = s.engines.Mounts.Changes(name)
	if accept {
		if err := s.engines.Mounts.Accept(ctx, name); err != nil {
			return nil, nil, err
		}
	}
	s.engines.Tools.Refresh() // what is left out is in the log
	var own []toolset.Entry
	for _, e := range s.List() {
		if strings.HasPrefix(e.Tool.Spec.Name, "mcp__"+name+"__") {
			own = append(own, e)
		}
	}
	return own, changed, nil
}
