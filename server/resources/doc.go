// Package resources is what clients read by an address: kept results, output of jobs, changes, plans and lists of a
// session, and the files of skills, with the methods of the skills extension of MCP.
//
// Ids are names and no rights: whatever a URI names, only the caller's own session is looked at, as its rules let it be
// seen. Nothing is changed and no command is run.
package resources
