// Package guidance finds the files in which a project instructs those who work in it (AGENTS.md, CLAUDE.md …), names
// them, and shows their texts.
//
// These texts are of the workspace, like any file: they are framed, cut and cleaned, and give no rights. Nothing is
// found that a call of the session may not read without a question. The package changes no file; of a session it
// changes only what it was told.
package guidance
