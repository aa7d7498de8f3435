package server

import (
	"context"
	"strings"

	"codehand/server/toolset"
)

// Mounted starts or reaches a mounted server and returns its tools, as tools/list would show them. The error says why
// it cannot be used; part of that may be the server's own words.
func (s *Server) Mounted(ctx context.Context, name string) ([]toolset.Entry, error) {
	if err := s.engines.Mounts.Reach(ctx, name); err != nil {
		return nil, err
	}
	s.engines.Tools.Refresh() // what is left out is in the log
	var own []toolset.Entry
	for _, e := range s.List() {
		if strings.HasPrefix(e.Tool.Spec.Name, "mcp__"+name+"__") {
			own = append(own, e)
		}
	}
	return own, nil
}
