// Package changes tells which files of a git work tree changed while something ran, and what they were before.
//
// A tree remembers the stat data of every file that git does not ignore. Between two looks the kernel says which names
// changed (watch_linux.go), so that a look costs what has changed and not what is there. Where it cannot say, every
// look goes over all files. A Span is the time of one command: it collects what each changed file was when it began.
//
// What a file was is known by git's index: with equal stat data its content is git's object (before.go). The package
// writes nothing and starts no program. It says that files changed, never who changed them.
package changes
