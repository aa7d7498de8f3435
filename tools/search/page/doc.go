// Package page returns a run of lines of a text of any size and encoding, in memory for that run and one chunk.
//
// It counts lines, cuts those that are too long, and decodes only what it returns. It opens no files and knows no
// tools.
package page
