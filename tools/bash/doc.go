// Package bash says what a command line can do at most: its parts, whether it is proved to read only, what is dangerous
// about it, which files it touches. It reads text with the grammar of bash, runs nothing and never looks at the disk.
package bash
