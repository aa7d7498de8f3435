//go:build !unix

package config

import "io/fs"

// Windows keeps who may write in access lists, which a profile directory inherits from its user; mode bits say
// nothing there.

func mine(fs.FileInfo) bool { return true }

func trustedOwner(fs.FileInfo) bool { return true }

func writableByOthers(fs.FileInfo) bool { return false }

func othersHaveRights(fs.FileInfo) bool { return false }

func replaceable(fs.FileInfo) bool { return false }

func writable(string) error { return nil }
