package server

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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
		if err := t.SelfCheck(); err != nil {
			errs = append(errs, fmt.Errorf("tool %s: %w", name, err))
		}
	}
	if len(errs) == 0 {
		errs = append(errs, checkLists(tools, always))
	}
	return errors.Join(errs...)
}

// checkLists makes the lists of every mode and era, for clients of every kind. Each entry is encoded once, since that is
// what takes the time (BenchmarkColdStart): a list is its entries.
func checkLists(tools []tool.Tool, always []string) error {
	for _, canAsk := range []bool{true, false} {
		sizes := map[string]int{} // of each entry, in bytes
		for _, d := range (lister{always: always}).offer(tools, canAsk).tools {
			body, err := marshal(d)
			if err != nil {
				return fmt.Errorf("tool %s: %w", d.Name, err)
			}
			sizes[d.Name] = len(body) + len(",")
		}
		for _, mode := range []string{deferralAuto, deferralOn, deferralOff} {
			l := lister{deferral: mode, always: always}
			if err := l.fit(l.offer(tools, canAsk), sizes); err != nil {
				return err
			}
		}
	}
	return nil
}

// fit refuses a list that no client would get. A session may have found everything.
func (l lister) fit(o offer, sizes map[string]int) error {
	all := slices.Collect(maps.Keys(sizes))
	for _, p := range []clients.Profile{{}, {DeferAll: true}} {
		for _, modern := range []bool{false, true} {
			sum := listFrame
			for _, d := range o.listed(session.Client{Modern: modern, SeesAll: l.showsAll(p)}, all) {
				sum += sizes[d.Name]
			}
			if sum >= maxResponse {
				return fmt.Errorf("the list of tools.deferral = %s has %d bytes, limit %d", l.deferral, sum, maxResponse)
			}
		}
	}
	return nil
}

// listFrame is room for what an answer to tools/list has besides its entries, in bytes.
const listFrame = 4 << 10
