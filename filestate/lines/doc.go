// Package lines matches the lines of two contents: which line of one corresponds to which line of the other. It is
// pure, and its work is bounded: beyond the bound it matches fewer lines, never wrong ones.
package lines
