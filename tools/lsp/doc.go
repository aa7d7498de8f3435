// Package lsp speaks the Language Server Protocol with the programs that know a language: where a name is defined, who
// uses it, what is wrong with a file, what a rename would change.
//
// A Pool keeps the servers of a process. It starts one at its first use, once for each language, root and owner, ends
// it when nobody asked for a while, and starts it anew a few times when it breaks. A Client is one running server. It
// keeps the server's picture of files equal to the disk, and answers in positions that count from 0 in UTF-16 units, as
// the protocol does. What a server sends is bounded before it is read, and it never makes the package write a file:
// edits are answers.
//
// The package knows no tool, no session and no rule: its callers say how a program is started and confined, and leave
// out of answers what may not be shown.
package lsp
