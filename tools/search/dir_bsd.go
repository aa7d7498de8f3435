//go:build unix && !linux

package search

// openBeneath opens a directory below another: no link on the way is followed.
func openBeneath(at int, rel string) (int, error) { return openByComponent(at, rel) }
