package server

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/clients"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// selfCheck looks at every tool, and at every list that a client may get, before a transport opens: mcp-go answers
// nothing at all to tools/list when one definition cannot be encoded, and some clients drop a whole server for one schema
// that they do not like.
func selfCheck(tools []tool.Tool, always []string) error {
	var errs []error
	owner := map[string]string{} // by name in lower case: call_tool takes names in any
	for _, t := range tools {
		name := t.Spec.Name
		for _, n := range append([]string{name}, t.Spec.Aliases...) {
			other, taken := owner[strings.ToLower(n)]
			if taken && (other != name || n == name) { // an alias may be the name in another case
				errs = append(errs, fmt.Errorf("tool %s: the name %s is taken by %s", name, n, other))
			}
			owner[strings.ToLower(n)] = name
		}
		err := t.SelfCheck()
		if err == nil {
			_, err = marshal(describeTool(t, t.Spec.Deferred))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("tool %s: %w", name, err))
		}
	}
	if len(errs) == 0 {
		errs = append(errs, checkLists(tools, always))
	}
	return errors.Join(errs...)
}

// checkLists encodes the lists of every mode and era, for clients of every kind.
func checkLists(tools []tool.Tool, always []string) error {
	all := make([]string, len(tools))
	for i, t := range tools {
		all[i] = t.Spec.Name
	}
	profiles := []clients.Profile{{}, {DeferAll: true}}
	done := map[session.Client]bool{}
	for _, mode := range []string{deferralAuto, deferralOn, deferralOff} {
		l := lister{deferral: mode, always: always}
		for _, canAsk := range []bool{true, false} {
			o := l.offer(tools, canAsk)
			for _, p := range profiles {
				for _, modern := range []bool{false, true} {
					c := session.Client{CanAsk: canAsk, Modern: modern, SeesAll: l.showsAll(p)}
					if done[c] { // in another mode
						continue
					}
					done[c] = true
					body, err := marshal(mcp.ListToolsResult{Tools: o.listed(c, all)})
					if err == nil && len(body) >= maxResponse {
						err = fmt.Errorf("%d bytes, limit %d", len(body), maxResponse)
					}
					if err != nil {
						return fmt.Errorf("the list of tools.deferral = %s, protocol 2026-07-28: %t: %w", mode, modern, err)
					}
				}
			}
		}
	}
	return nil
}
