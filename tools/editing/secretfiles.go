package editing

import (
	"fmt"

	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// RefuseSecret refuses a text with a secret for a file that must not get any. parameter names the text. The file itself
// counts, and the name that was given.
func RefuseSecret(s *session.State, path, parameter, text string) error {
	if s == nil || s.Clean == nil {
		return nil
	}
	real, _ := s.Space.Resolve(path)
	if s.Clean.Ruled(path, true) != permission.Deny && s.Clean.Ruled(real, true) != permission.Deny {
		return nil
	}
	found := results.Secrets(text)
	if len(found) == 0 {
		return nil
	}
	first, more := found[0], ""
	if tail := first.Tail(text); tail != "" {
		more = ", ..." + tail
	}
	if n := len(found) - 1; n > 0 {
		more += fmt.Sprintf(", and %d more", n)
	}
	return tool.Refuse(tool.SecretFound,
		"%s seems to contain a secret: %s (line %d%s). No secrets may be written to %s (write.secret_paths). "+
			"Refer to a variable or a file that holds it instead.",
		parameter, first.Kind, first.Line, more, path)
}
