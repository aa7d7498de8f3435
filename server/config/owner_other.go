//go:build !unix

package config

import (
	"errors"
	"io/fs"
)

// Windows keeps who may write in access lists, which a profile directory inherits from its user; mode bits say
// nothing there.

func mine(fs.FileInfo) bool { return true }

func trustedOwner(fs.FileInfo) bool { return true }

// ownedBy refuses every file: settings for all users must not come from an ordinary one, and on Windows every user may
// make files in the directory for them.
func ownedBy(fs.FileInfo, int) error {
	return errors.New("cannot be used: on this system codehand cannot check who may change it; remove it")
}

func writableByOthers(fs.FileInfo) bool { return false }

func othersHaveRights(fs.FileInfo) bool { return false }

func replaceable(fs.FileInfo) bool { return false }

func writable(string) error { return nil }
