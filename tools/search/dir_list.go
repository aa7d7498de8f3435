//go:build !linux

package search

import (
	"io/fs"

	"codehand/tools/search/index"
)

// entriesOf takes from a listing what a walk wants.
func entriesOf(list []fs.DirEntry) []index.Listed {
	var out []index.Listed
	for _, e := range list {
		out = append(out, index.Listed{Name: e.Name(), Kind: e.Type()})
	}
	return out
}
