package auth

import (
	"context"
	"io/fs"
	"os"
	"time"
)

const (
	lookEvery = 2 * time.Second
	// young is the age below which a file's times prove nothing: what is written within one tick of the file system's
	// clock leaves them as they are.
	young = 2 * time.Second
)

// A sight is what the tokens file looked like when it was last read.
type sight struct {
	info    fs.FileInfo // nil: there was none
	settled bool        // the file need not be read again while it looks like this
	missing bool        // it was not there when Watch last looked
	failed  bool        // the last reading did
	problem string      // of the last reading, as logged
}

// same says whether the file still looks as it did. Mode and owner count, too: both can make it refused or right again.
func (s sight) same(now fs.FileInfo) bool {
	if s.info == nil || now == nil {
		return s.info == nil && now == nil
	}
	return os.SameFile(s.info, now) && s.info.Size() == now.Size() && s.info.ModTime().Equal(now.ModTime()) &&
		s.info.Mode() == now.Mode() &&
		sameOwner(s.info, now)
}

// Reload reads the tokens again now. A file that is not there has none. With any other error the old tokens stay.
func (p *Porter) Reload() error {
	_, err := p.reload()
	return err
}

// Readable says whether the tokens in force are those of the file. It is true where tokens come from no file.
func (p *Porter) Readable() bool {
	p.loading.Lock()
	defer p.loading.Unlock()
	return !p.seen.failed
}

func (p *Porter) reload() (changed bool, err error) {
	if p.file == nil {
		return false, nil
	}
	p.loading.Lock()
	defer p.loading.Unlock()
	return p.load()
}

// load reads the file. The caller has loading.
func (p *Porter) load() (changed bool, err error) {
	start := time.Now() // the clock that files have
	read, err := readTokens(p.file.path, ownerOrUs)
	p.seen.info = read.info
	p.seen.failed = err != nil
	p.seen.settled = err == nil && (read.info == nil || start.Sub(read.info.ModTime()) > young)
	if err != nil {
		return false, err
	}
	p.seen.problem = ""
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held != nil && sameTokens(p.lines(), read.byID) {
		return false, nil
	}
	p.held = make(map[string]*held, len(read.byID))
	for id, l := range read.byID {
		p.held[id] = p.hold(l)
	}
	return true, nil
}

// lines are the lines of what is held. The caller has mu.
func (p *Porter) lines() map[string]*line {
	lines := make(map[string]*line, len(p.held))
	for id, h := range p.held {
		lines[id] = h.line
	}
	return lines
}

// Watch looks every 2 s whether the tokens file changed, until ctx ends. A file that cannot be read keeps the tokens
// that there are, and is logged; one that is gone has none, but only if it is still gone at the next look, since some
// editors write a file anew. It calls changed after each change, and when a token has expired: then Valid says whom it
// concerns. It runs in Watch's goroutine; nil: it is not called. Watch also keeps the last use of the tokens in its
// file.
func (p *Porter) Watch(ctx context.Context, changed func()) {
	if p.file == nil {
		<-ctx.Done()
		return
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	last := p.o.Now()
	unsaved := false // as logged
	for {
		select {
		case <-ctx.Done():
			p.saveUse(true, &unsaved)
			return
		case <-tick.C:
		}
		now := p.o.Now()
		if (p.look() || p.expired(last, now)) && changed != nil {
			changed()
		}
		last = now
		p.saveUse(false, &unsaved)
	}
}

// look reads the file if it may have changed, and says whether the tokens did.
func (p *Porter) look() bool {
	p.loading.Lock()
	defer p.loading.Unlock()
	info, err := os.Stat(p.file.path)
	missing := os.IsNotExist(err)
	if missing && p.seen.info != nil && !p.seen.missing {
		p.seen.missing = true
		return false
	}
	p.seen.missing = missing
	if (err == nil || missing) && p.seen.settled && p.seen.same(info) {
		return false
	}
	changed, err := p.load()
	if err != nil && err.Error() != p.seen.problem {
		p.seen.problem = err.Error() // once, not every 2 s
		p.o.Log.Error("cannot reload tokens; the old ones stay in use", "err", err)
	}
	return changed
}

// expired says whether a token came to its end since last.
func (p *Porter) expired(last, now time.Time) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, h := range p.held {
		if h.token.State(last) == "active" && h.token.State(now) == "expired" {
			return true
		}
	}
	return false
}

// saveUse writes the last use of the tokens, and logs the first of several failures in a row.
func (p *Porter) saveUse(always bool, failed *bool) {
	tried, err := p.uses.save(p.file, p.o.Now(), always, func(id string) bool {
		p.mu.RLock()
		defer p.mu.RUnlock()
		return p.held[id] != nil
	})
	if !tried {
		return
	}
	if err != nil && !*failed {
		p.o.Log.Warn("cannot write when tokens were last used", "err", err)
	}
	*failed = err != nil
}
