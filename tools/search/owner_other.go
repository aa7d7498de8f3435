//go:build !unix

package search

// sameOwner cannot be told here, so nothing that needs it is followed.
func sameOwner(string, string) bool { return false }
