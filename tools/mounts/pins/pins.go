// Package pins remembers how each mounted server described its tools when they were first seen, across processes. A
// server that later describes one in another way may mean to deceive the model, so a person accepts that first.
//
// It keeps one file for each server, which only its owner may read, and decides nothing.
package pins

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"codehand/filestate/lock"
	"codehand/tools/mounts/upstream"
)

const (
	// mostPinned is how many tools of one server are remembered. Beyond it those that it lists no longer are forgotten.
	mostPinned = 2_000
	// mostKept is how large a definition may be that is kept whole; of a larger one its digest is.
	mostKept = 64 << 10
	mostFile = 160 << 20
)

// A Pin is how a tool was described when it was first seen, or when a person accepted it last.
type Pin struct {
	Sum        string               `json:"sum"`                  // Sum of it
	Definition *upstream.Definition `json:"definition,omitempty"` // nil: it was too large to be kept
}

// A Book keeps the pins of all servers. It is safe for concurrent use, also by several processes.
type Book struct {
	dir    string
	locker lock.Locker

	mu     sync.Mutex
	memory map[string]map[string]Pin // of servers whose file cannot be written
}

// New makes a Book whose files are in dir, which is made when it is needed. With "" nothing outlives the process.
func New(dir string, locker lock.Locker) *Book {
	return &Book{dir: dir, locker: locker, memory: map[string]map[string]Pin{}}
}

// Sum is a digest of all that a server says of a tool. The order of members in its schema does not count.
func Sum(d upstream.Definition) string {
	d.Schema = canonical(d.Schema)
	raw, err := json.Marshal(d)
	if err != nil {
		raw = fmt.Append(nil, d.Name, "\x00", d.Title, "\x00", d.Description, "\x00", string(d.Schema))
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// canonical is JSON with the members of objects in order. What cannot be read stays as it is.
func canonical(raw json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return raw
	}
	sorted, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return sorted
}

// Hold pins the tools that have no pin yet, and returns the pins of those that are described in another way now, by the
// server's name for them. With an error, which says why nothing could be read or kept, those without a pin are held by
// what this process has seen, and all of a file that cannot be read count as changed: their Pin is zero.
func (b *Book) Hold(ctx context.Context, server string, all []upstream.Definition) (changed map[string]Pin, err error) {
	changed = map[string]Pin{}
	err = b.change(ctx, server, func(pinned map[string]Pin) bool {
		grew := false
		for _, d := range all {
			p, ok := pinned[d.Name]
			switch {
			case !ok:
				pinned[d.Name] = newPin(d)
				grew = true
			case p.Sum != Sum(d):
				changed[d.Name] = p
			}
		}
		if len(pinned) > mostPinned {
			forget(pinned, all)
			grew = true
		}
		return grew
	})
	if errors.Is(err, errUnreadable) {
		for _, d := range all {
			changed[d.Name] = Pin{}
		}
	}
	return changed, err
}

// Known returns the tools of a server that have a pin, as far as their definitions were kept whole, by name. It waits
// for no other process. What cannot be read has none.
func (b *Book) Known(server string) (all []upstream.Definition) {
	b.mu.Lock()
	defer b.mu.Unlock()
	pinned := b.memory[server]
	if pinned == nil && b.dir != "" {
		pinned, _ = b.read(server) // the server itself says what it has, once it has started
	}
	for _, name := range slices.Sorted(maps.Keys(pinned)) {
		if d := pinned[name].Definition; d != nil && d.Name == name {
			all = append(all, *d)
		}
	}
	return all
}

// forget drops what a server lists no longer.
func forget(pinned map[string]Pin, all []upstream.Definition) {
	listed := map[string]bool{}
	for _, d := range all {
		listed[d.Name] = true
	}
	for name := range pinned {
		if !listed[name] {
			delete(pinned, name)
		}
	}
}

func newPin(d upstream.Definition) Pin {
	p := Pin{Sum: Sum(d)}
	if len(d.Schema)+len(d.Description)+len(d.Title) <= mostKept {
		p.Definition = &d
	}
	return p
}

// Accept pins tools as they are described now.
func (b *Book) Accept(ctx context.Context, server string, all ...upstream.Definition) error {
	accept := func(pinned map[string]Pin) bool {
		for _, d := range all {
			pinned[d.Name] = newPin(d)
		}
		return true
	}
	err := b.change(ctx, server, accept)
	if errors.Is(err, errUnreadable) { // a person has just looked at what is there, so a new file begins
		if err = os.Remove(b.file(server)); err == nil {
			err = b.change(ctx, server, accept)
		}
	}
	return err
}

// Same says whether the pin of a tool is that of this definition, as the file has it now.
func (b *Book) Same(ctx context.Context, server string, d upstream.Definition) bool {
	same := false
	_ = b.change(ctx, server, func(pinned map[string]Pin) bool { // without the file it is not the same
		same = pinned[d.Name].Sum == Sum(d)
		return false
	})
	return same
}

var errUnreadable = errors.New("the pins cannot be read")

func (b *Book) file(server string) string { return filepath.Join(b.dir, server+".json") }

// change lets edit see the pins of a server, and keeps them if it says that it changed them.
func (b *Book) change(ctx context.Context, server string, edit func(map[string]Pin) bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if seen := b.memory[server]; seen != nil || b.dir == "" {
		if seen == nil {
			seen = map[string]Pin{}
			b.memory[server] = seen
		}
		edit(seen)
		return nil
	}
	err := os.MkdirAll(b.dir, 0o700)
	if err != nil {
		return b.inMemory(server, edit, err)
	}
	unlock, err := b.locker.Lock(ctx, b.file(server))
	if err != nil {
		return b.inMemory(server, edit, err)
	}
	defer unlock()
	pinned, err := b.read(server)
	if err != nil {
		return err
	}
	if !edit(pinned) {
		return nil
	}
	if err := b.write(server, pinned); err != nil {
		b.memory[server] = pinned
		return fmt.Errorf("the pins are kept in memory only: %w", err)
	}
	return nil
}

// inMemory goes on without a file.
func (b *Book) inMemory(server string, edit func(map[string]Pin) bool, why error) error {
	b.memory[server] = map[string]Pin{}
	edit(b.memory[server])
	return fmt.Errorf("the pins are kept in memory only: %w", why)
}

func (b *Book) read(server string) (map[string]Pin, error) {
	f, err := os.Open(b.file(server))
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]Pin{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	defer func() { _ = f.Close() }() // only read
	raw, err := io.ReadAll(io.LimitReader(f, mostFile))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	var kept struct {
		Tools map[string]Pin `json:"tools"`
	}
	if err := json.Unmarshal(raw, &kept); err != nil || kept.Tools == nil {
		return nil, fmt.Errorf("%w: %s is damaged", errUnreadable, b.file(server))
	}
	return kept.Tools, nil
}

// write replaces the file of a server as a whole.
func (b *Book) write(server string, pinned map[string]Pin) error {
	raw, err := json.Marshal(map[string]any{"tools": pinned})
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(b.dir, "."+server+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), b.file(server))
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the error that counts is there
	}
	return err
}

// Differs names what is not as in the pin: title, description, schema, hints; of a pin that was not kept whole,
// nothing.
func Differs(p Pin, now upstream.Definition) []string {
	if p.Definition == nil {
		return nil
	}
	var parts []string
	before := *p.Definition
	if before.Title != now.Title {
		parts = append(parts, "title")
	}
	if before.Description != now.Description {
		parts = append(parts, "description")
	}
	if !bytes.Equal(canonical(before.Schema), canonical(now.Schema)) {
		parts = append(parts, "schema")
	}
	old, errOld := json.Marshal(before.Hints)
	own, errOwn := json.Marshal(now.Hints)
	if errOld != nil || errOwn != nil || !bytes.Equal(old, own) {
		parts = append(parts, "hints")
	}
	return parts
}
