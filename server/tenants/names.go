package tenants

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"codehand/server/auth"
)

// namesDir is where the state directory has the whole name of each principal, in a file that is named as the
// principal's directories are.
const namesDir = "principals"

// maxName is how many bytes of such a file are read: more than the longest name.
const maxName = 1 << 10

// settle makes sure that the directories named after a principal are that principal's: it keeps the whole name beside
// them, or compares it with the one that is kept, and carries over directories that have the name they had before.
func (r *Registry) settle(who auth.Principal) error {
	if r.maker.State == "" || who.Via == auth.ModeNone {
		return nil
	}
	r.founding.Lock()
	defer r.founding.Unlock()
	if err := r.keepName(who); err != nil {
		return err
	}
	if auth.OldSlug(who.ID) == who.Slug {
		return nil
	}
	tops := append([]string(nil), who.Roots...)
	if tasks := r.maker.Config.Tasks.Directory; tasks != "" {
		tops = append(tops, filepath.Join(tasks, who.Slug))
	}
	for _, root := range tops {
		if err := r.carry(who, root); err != nil {
			return err
		}
	}
	return nil
}

// keepName keeps a principal's whole name, or refuses another one that has the same directories.
func (r *Registry) keepName(who auth.Principal) error {
	dir := filepath.Join(r.maker.State, namesDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	names, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = names.Close() }() // a directory handle holds no data
	kept, err := readName(names, who.Slug)
	if errors.Is(err, fs.ErrNotExist) { // written whole under another name, then linked, which never replaces
		fresh := "." + rand.Text()
		err = names.WriteFile(fresh, []byte(who.ID), 0o600)
		if err == nil {
			err = names.Link(fresh, who.Slug)
		}
		if err = errors.Join(err, names.Remove(fresh)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		kept, err = readName(names, who.Slug)
	}
	if err == nil && kept != who.ID {
		err = fmt.Errorf("its directories are those of another principal: %s is kept for %q",
			filepath.Join(dir, who.Slug), kept)
	}
	return err
}

func readName(names *os.Root, slug string) (string, error) {
	f, err := names.Open(slug)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read
	text := make([]byte, maxName)
	n, err := f.Read(text)
	if n > 0 {
		err = nil
	}
	return string(text[:n]), err
}

// carry renames the directory on the way to a root that has the name of before. Several names have that one, so it must
// be known that this one had it: by what the principal did here, or by the operator's word.
func (r *Registry) carry(who auth.Principal, root string) error {
	at := root
	for strings.Contains(filepath.Dir(at), who.Slug) {
		at = filepath.Dir(at)
	}
	name := filepath.Base(at)
	if !strings.Contains(name, who.Slug) {
		return nil // shared, or named by hand
	}
	if _, err := os.Lstat(at); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent, err := os.OpenRoot(filepath.Dir(at))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = parent.Close() }() // a directory handle holds no data
	old := strings.ReplaceAll(name, who.Slug, auth.OldSlug(who.ID))
	info, err := parent.Lstat(old)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || !info.IsDir() {
		return err
	}
	from := filepath.Join(filepath.Dir(at), old)
	if !r.vouched(who) {
		r.maker.Log.Warn("a directory has the name that this principal's had before, as other names have, and nothing "+
			"shows whose it is: if it is this one's, rename it", "principal", who.ID, "from", from, "to", at)
		return nil
	}
	if err := parent.Rename(old, name); err != nil {
		return err
	}
	r.maker.Log.Info("a principal's directory has a longer name now", "principal", who.ID, "from", from, "to", at)
	return nil
}

// vouched says whether a principal worked here before, or is one that the operator names.
func (r *Registry) vouched(who auth.Principal) bool {
	r.mu.Lock()
	_, named := r.said.Named[who.ID]
	r.mu.Unlock()
	return named || strings.HasPrefix(who.Via, "token:") || r.maker.Worked != nil && r.maker.Worked(who.ID)
}
