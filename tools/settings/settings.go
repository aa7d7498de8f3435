package settings

import (
	"path/filepath"
	"strings"
)

// Own says what is wrong with the content of a file of this server's own settings. known: there are such at the path.
// The error names line and column where it can. It is pure.
type Own func(path string, content []byte) (known bool, err error)

// A Checker knows which files are settings. The nil Checker knows those of clients.
type Checker struct {
	own Own
}

// New makes a Checker. own may be nil.
func New(own Own) *Checker { return &Checker{own} }

// Break says why a change would break the settings of a file that goes by the paths; nil: it would not, or it is no
// file of settings. A file that could not be read before may be whatever one likes, for it may take several changes to
// mend it. before nil: there is no file yet, and without one all programs work.
func (c *Checker) Break(before, after []byte, paths ...string) error {
	for _, path := range paths {
		check := c.of(path)
		if check == nil {
			continue
		}
		if err := check(after); err != nil && (before == nil || check(before) == nil) {
			return err
		}
	}
	return nil
}

// of returns what checks the settings at a path; nil: there are none.
func (c *Checker) of(path string) func(content []byte) error {
	if s, dialect, ok := ofClient(path); ok {
		return func(content []byte) error { return checkJSON(content, dialect, s) }
	}
	if c == nil || c.own == nil {
		return nil
	}
	if known, _ := c.own(path, nil); !known {
		return nil
	}
	return func(content []byte) error {
		_, err := c.own(path, content)
		return err
	}
}

// ofClient finds the settings of a client by the path of the file. Names are compared as systems do that fold case: to
// check one file too many does no harm.
func ofClient(path string) (s shape, d dialect, ok bool) {
	name := strings.ToLower(filepath.Base(path))
	switch in := strings.ToLower(filepath.Base(filepath.Dir(path))); {
	case name == ".mcp.json":
		return object(field{"mcpServers", servers()}), plain, true
	case filepath.Ext(name) != ".json":
	case in == ".claude" && strings.HasPrefix(name, "settings"):
		return claudeSettings(), plain, true
	case in == ".vscode":
		return vscodeFile(name), commented, true
	}
	return shape{}, plain, false
}
