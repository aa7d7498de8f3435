package editing

import (
	"fmt"

	"codehand/tools/permission"
	"codehand/tools/secrets"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// RefuseSecret refuses to write text that holds a secret to a file under write.secret_paths. The path as given and the
// resolved path are both checked. parameter is the name of the input that holds text.
func RefuseSecret(s *session.State, path, parameter, text string) error {
	if s == nil || s.Clean == nil {
		return nil
	}
	real, _ := s.Space.Resolve(path)
	if s.Clean.Ruled(path, true) != permission.Deny && s.Clean.Ruled(real, true) != permission.Deny {
		return nil
	}
	found := secrets.Find(text)
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
