//go:build unix && !linux

package search

import (
	"errors"
	"os"

	"codehand/tools/search/index"
)

// openBeneath opens a directory below another: no link on the way is followed.
func openBeneath(at int, rel string) (int, error) { return openByComponent(at, rel) }

// below opens a directory below d by its slash path.
func (d folder) below(rel string) (folder, error) {
	fd, err := openBeneath(d.fd, rel)
	if err != nil {
		return folder{}, err
	}
	return folder{fd, os.NewFile(uintptr(fd), rel)}, nil
}

// entries reads the next names, at least one of them, or none at the end.
func (d folder) entries(n int) ([]index.Listed, error) {
	list, err := d.f.ReadDir(n)
	return entriesOf(list), err
}

// trusts says whether the stamps of a file system tell of each change. They may, but nobody has shown it here.
func (d folder) trusts() bool   { return false }
func (r *regular) trusts() bool { return false }

// again opens the directory once more, to be kept: nothing is, on these systems.
func (d folder) again() (folder, error) { return folder{}, errors.ErrUnsupported }
