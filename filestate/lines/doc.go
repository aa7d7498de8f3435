// Package lines says which lines of two contents belong together. It is pure, and bounded in what it compares: beyond
// that it says less, never anything wrong.
package lines
