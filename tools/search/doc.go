// Package search finds files by name and by content.
//
// It runs in the process, starts no program, follows no links, and says in every answer whether the answer is
// complete. It opens everything through a directory handle. It knows no tools and no sessions.
//
// A query is a walk (walk.go) that hands files to workers. Each worker reads its file in chunks of whole lines
// (scan.go), asks a matcher for the lines that match (search/pattern), and gives the hits of the file to one
// collector (collect.go), which keeps the hits for the answer, in order, and counts the rest. So the answer does not
// depend on the number of workers or on their speed.
package search
