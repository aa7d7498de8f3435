// Package settings says whether a file of settings can still be read by the program that it is for.
//
// It knows those of clients by their paths: the settings of .claude, .mcp.json, and the files of .vscode, which are
// JSON with comments. Of the fields that it knows, the types must fit; whatever it does not know is allowed. What this
// server's own settings must be, it is told.
//
// It is pure: no disk, no clock. Nothing in it changes after it was made, so all of it is safe for concurrent use.
package settings
