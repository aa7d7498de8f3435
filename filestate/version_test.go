package filestate_test

import (
	"crypto/sha256"
	"encoding/hex"

	"codehand/filestate"
)

// versionOf is the version of a content that was wholly seen, made without the ledger.
func versionOf(content string) filestate.Version {
	sum := sha256.Sum256([]byte(content))
	return filestate.Version(hex.EncodeToString(sum[:])[:12])
}

// fits says whether v is a version of content, partial or not.
func fits(v filestate.Version, content string) bool {
	return v == versionOf(content) || v == versionOf(content)+"p"
}
