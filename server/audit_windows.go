package server

import "io/fs"

// noFollow: there is no such flag, and making a link takes a right of its own.
const noFollow = 0

// auditOpen: mode bits say nothing here; what counts are the rights of the directory above.
func auditOpen(fs.FileInfo) bool { return false }
