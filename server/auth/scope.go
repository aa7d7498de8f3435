package auth

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

// ParseScopes reads mcp:read, mcp:write, mcp:shell, mcp:web, mcp:all and mcp:admin.
func ParseScopes(names []string) (Scopes, error) { return 0, nil }

// Has says whether all of want are there.
func (s Scopes) Has(want Scopes) bool { return s&want == want }

// String is the scopes by name, with spaces between.
func (s Scopes) String() string { return "" }
