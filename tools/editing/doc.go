// Package editing has what the tools that change files share: applying edits to one file or to several, all or none;
// the read guard's answers for a file that was not read or has changed; and what an answer says of a change. Files are
// changed by filestate alone, and paths are judged by workspace: nothing here decides either.
package editing
