// Package bash says what a command line can do at most: its parts, whether it is proved to read only, what is dangerous
// about it, which files it touches. It reads text with the grammar of bash, runs nothing and never looks at the disk.
//
// Analyze reads a command in this order. Later steps use what earlier ones found, and each file is named for its step:
//
//   - script.go: the text becomes a syntax tree, or the reason why it does not.
//   - parts*.go: the tree is walked once. Each simple command is found, also in substitutions, nested shells, wrappers
//     and what is fed to a shell; parts_spell.go says what each word is.
//   - reading.go: the words of a command are told apart by the row of its program (tools/bash/programs).
//   - guesses.go: what a word may be that only the shell knows.
//   - files*.go: which paths the command names or is known to touch, and where git starts.
//   - closed*.go, sed.go: rules R0 to R6. If all hold for every part, the line is on the closed list of
//     what only reads.
//   - danger*.go: rule R7. It looks at every word, and its answer replaces that of the proof.
//
// What none of them can tell is said and never guessed: Unclear, Hidden, UnsureReads and UnsureWrites of Analysis.
package bash
