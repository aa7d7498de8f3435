// Package resources serves what clients read by URI: kept results, output of jobs, changes, plans and lists of a
// session, and the files of skills. It also has the methods of the skills extension of MCP.
//
// An id in a URI gives no rights: the package looks only at the caller's own session, and obeys its rules. It changes
// nothing and runs no command.
package resources
