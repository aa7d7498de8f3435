// Package forms changes our entry in the text of a client's file and leaves all other bytes as they are: comments,
// order and line ends of a person stay. It knows three forms: JSON with comments, TOML, and YAML in blocks.
//
// It splices text in at the positions that a parser gives, and never writes a decoded value back. Merged and Without
// say in decoded values what a text must be after a change. Merge and Remove do not check it: the caller decodes the
// new text, compares, and refuses a file where the two differ.
//
// It is pure. It knows no client, no path and no disk: what is written of codehand comes in as a snippet in the same
// form.
package forms
