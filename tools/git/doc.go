// Package git reads the files of a repository: where it is, its configuration, its index, its objects. It says whether
// git would run a program there, or show a file that a rule covers. It never starts git and writes nothing.
package git
