package server

import (
	"errors"
	"fmt"
	"strings"

	"codehand/server/jsonrpc"
	"codehand/server/tenants"
	"codehand/tools/tool"
)

// selfCheck looks at every tool, and at the longest list that a client may get, before a transport opens: mcp-go
// answers nothing at all to tools/list when one definition cannot be encoded, and some clients drop a whole server for
// one schema that they do not like.
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

// checkLists makes the longest list of each kind of clients: that of all tools. Every other one is a part of it.
func checkLists(tools []tool.Tool, always []string) error {
	for _, canAsk := range []bool{true, false} {
		size := listFrame
		for _, d := range (tenants.Lists{Always: always}).Offer(tools, canAsk).Tools {
			body, err := jsonrpc.Marshal(d)
			if err != nil {
				return fmt.Errorf("tool %s: %w", d.Name, err)
			}
			size += len(body) + len(",")
		}
		if size >= jsonrpc.MaxResponse {
			return fmt.Errorf("the list of all tools has %d bytes, limit %d", size, jsonrpc.MaxResponse)
		}
	}
	return nil
}

// listFrame is room for what an answer to tools/list has besides its entries, in bytes.
const listFrame = 4 << 10
