//go:build !unix

package keys

import "io/fs"

// private leaves it to the lists of rights of the system, which modes do not show.
func private(fs.FileInfo) error { return nil }
