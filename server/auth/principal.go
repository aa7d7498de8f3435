package auth

// A Principal is who calls, and what he may do at most. The zero value may do nothing.
type Principal struct {
	ID      string   // as authenticated; 1 to 200 bytes, printable, NFC; compared byte by byte
	Slug    string   // for directory names; different IDs never share one
	Roots   []string // expanded, absolute
	Mode    string   // at the start of a session; a name of tools/permission
	MaxMode string   // no session goes above
	Profile string   // which tools are listed and callable: default, readonly; "": default
	Allow   []string // permission rules, as written
	Deny    []string
	Scopes  Scopes
	Quota   Quota
	Admin   bool
	Via     string // none, token:<id>
}

// Values are what an operator says about a principal: in the configuration for all or one, and in a token. A nil field
// says nothing, and the next source is asked.
type Values struct {
	Enabled *bool    // false: 403
	Roots   []string // templates with {principal}
	Seed    *string  // directory that is copied into a new workspace
	Mode    *string
	MaxMode *string
	Profile *string
	Allow   []string
	Deny    []string
	Scopes  []string
	Admin   *bool
	Quota   map[string]string // keys of Quota, values as written
}
