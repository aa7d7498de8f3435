// Command score plays the cases of testdata/score, of what people want from a server that works on their files, against
// codehand and against other servers where they are installed, and prints one table. It is never shipped.
//
//	go run -tags score ./cmd/score >docs/comparison.md
//
// Each case is a directory of its own below one root that each server is given. A case that a server has no tool for
// counts neither for it nor against it. -cases CHOICE plays those whose name or area holds that text.
package main
