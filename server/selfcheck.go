package server

import (
	"errors"
	"fmt"

	"codehand/tools/tool"
)

// selfCheck looks at every tool before a transport opens: mcp-go answers nothing at all to tools/list when one
// definition cannot be encoded, and some clients drop a whole server for one schema that they do not like.
func selfCheck(tools []tool.Tool) error {
	var errs []error
	owner := map[string]string{}
	for _, t := range tools {
		name := t.Spec.Name
		for _, n := range append([]string{name}, t.Spec.Aliases...) {
			if other, taken := owner[n]; taken {
				errs = append(errs, fmt.Errorf("tool %s: the name %s is taken by %s", name, n, other))
			}
			owner[n] = name
		}
		err := t.SelfCheck()
		if err == nil {
			_, err = marshal(describeTool(t))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("tool %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
