package pipeline

import (
	"context"
	"sync"
	"time"

	"codehand/tools/permission"
)

// An Always keeps the rules that a person allows for good: in a file of the user's, and for the calls of this process.
// It is safe for concurrent use.
type Always struct {
	File string                                       // that the rules go to, as people are told it
	Add  func(ctx context.Context, rule string) error // writes one there

	mu    sync.Mutex
	rules []string
}

// keep writes a rule to the file. From then on it holds in this process, too.
func (a *Always) keep(ctx context.Context, rule string) error {
	if err := a.Add(ctx, rule); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rules = append(a.rules, rule)
	return nil
}

// grants are the rules that were allowed since the process started. nil has none.
func (a *Always) grants(now time.Time) []permission.Grant {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []permission.Grant
	for _, rule := range a.rules {
		all = append(all, permission.Grant{Rule: rule, At: now, File: a.File})
	}
	return all
}
