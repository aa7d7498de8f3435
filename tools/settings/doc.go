// Package settings says whether the program that a settings file belongs to can still read it.
//
// It knows the settings files of clients by their paths: the settings of .claude, .mcp.json, and the files of .vscode,
// which are JSON with comments. Fields that it knows must have the right type; unknown fields are allowed. Its caller
// brings the check for this server's own settings.
//
// It is pure: no disk, no clock. Its values are immutable, so all of it is safe for concurrent use.
package settings
