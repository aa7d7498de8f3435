// Package index remembers names and contents of files between searches, so that the next search of the same tree reads
// only what can match.
//
// A Table has the listing of directories, and for each file a summary of its content: which groups of four bytes may be
// in it. Everything in it bears the Stamp of the moment when it was read, and is good only for a directory or file that
// has the same Stamp now. The caller has opened the directory already, so the Table grants nothing: it has no paths,
// and without the directory in hand nothing is found in it. It touches no disk.
package index
