package auth

import (
	"fmt"
	"strings"
)

// Scopes are what a token is good for. The zero value is good for nothing.
type Scopes uint8

// The scopes. Write implies read; shell implies both.
const (
	Read Scopes = 1 << iota
	Write
	Shell
	Web
	AdminConsole
)

// everything is what mcp:all stands for. It is about tools, so the console is not in it.
const everything = Read | Write | Shell | Web

// scopeNames are the scopes as they are written, each with what it implies, in the order of String.
var scopeNames = []struct {
	name string
	bit  Scopes
	all  Scopes
}{
	{"mcp:read", Read, Read},
	{"mcp:write", Write, Read | Write},
	{"mcp:shell", Shell, Read | Write | Shell},
	{"mcp:web", Web, Web},
	{"mcp:all", 0, everything},
	{"mcp:admin", AdminConsole, AdminConsole},
}

// ParseScopes reads mcp:read, mcp:write, mcp:shell, mcp:web, mcp:all and mcp:admin. Without names the Scopes are zero.
func ParseScopes(names []string) (Scopes, error) {
	var s Scopes
	for _, name := range names {
		all, ok := scopeOf(name)
		if !ok {
			return 0, fmt.Errorf("unknown scope %q; the scopes are mcp:read, mcp:write, mcp:shell, mcp:web, mcp:all, "+
				"mcp:admin", name)
		}
		s |= all
	}
	return s, nil
}

func scopeOf(name string) (all Scopes, ok bool) {
	for _, n := range scopeNames {
		if n.name == name {
			return n.all, true
		}
	}
	return 0, false
}

// Has says whether all of want are there.
func (s Scopes) Has(want Scopes) bool { return s&want == want }

// String is the scopes by name, with spaces between.
func (s Scopes) String() string {
	var names []string
	for _, n := range scopeNames {
		if s&n.bit != 0 {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, " ")
}
