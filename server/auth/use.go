package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync"
	"time"
)

// Last use is kept beside the tokens file, not in it: the file is what an operator decided, and a server may be unable
// to write it. What is there is for people to see; nothing is decided by it, so it is written without fsync, and a
// minute of it may be lost.

const (
	useSuffix = ".used"
	useEvery  = time.Minute            // at most so often is it written
	usePause  = 100 * time.Millisecond // for another writer; what is more would hold up the look at the tokens
)

// LastUse returns when each token was last used, as far as servers have written it: they do so once a minute and when
// they end. A token that was never used is not in it.
func (f *TokenFile) LastUse() (map[string]time.Time, error) {
	used := map[string]time.Time{}
	var before fs.FileInfo
	text, err := readPrivate(f.path+useSuffix, ownerOrRoot, &before)
	if errors.Is(err, fs.ErrNotExist) {
		return used, nil
	}
	if err == nil && json.Unmarshal(text, &used) != nil {
		err = errors.New("is not a JSON object of times; remove it")
	}
	if err != nil {
		return nil, fmt.Errorf("last use of the tokens, %s: %w", f.path+useSuffix, err)
	}
	return used, nil
}

// uses are the last uses of tokens by id.
type uses struct {
	mu      sync.Mutex
	at      map[string]time.Time
	dirty   bool
	written time.Time // or tried
}

func (u *uses) note(id string, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if at := second(now); at.After(u.at[id]) {
		u.at[id] = at
		u.dirty = true
	}
}

func (u *uses) all() map[string]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.at)
}

// save writes what is new, unless it did so within useEvery. Other servers of the same file are not forgotten; tokens
// that keep does not know are. It says whether it tried; what failed is tried again the next time.
func (u *uses) save(f *TokenFile, now time.Time, always bool, keep func(id string) bool) (tried bool, err error) {
	u.mu.Lock()
	due := u.dirty && (always || now.Sub(u.written) >= useEvery)
	if due {
		u.dirty, u.written = false, now
	}
	u.mu.Unlock()
	if !due {
		return false, nil
	}
	if err = u.write(f, keep); err != nil {
		u.mu.Lock()
		u.dirty = true
		u.mu.Unlock()
	}
	return true, err
}

func (u *uses) write(f *TokenFile, keep func(id string) bool) error {
	unlock, err := lockBeside(f.path, usePause)
	if err != nil {
		return err
	}
	defer unlock()
	if others, err := f.LastUse(); err == nil { // else what is there is of no use, and is written anew
		u.merge(others)
	}
	u.mu.Lock()
	maps.DeleteFunc(u.at, func(id string, _ time.Time) bool { return !keep(id) })
	text, err := json.Marshal(u.at)
	u.mu.Unlock()
	if err == nil {
		err = replaceFile(f.path+useSuffix, append(text, '\n'), false)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", f.path+useSuffix, err)
	}
	return nil
}

func (u *uses) merge(others map[string]time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for id, at := range others {
		if at.After(u.at[id]) {
			u.at[id] = at
		}
	}
}
