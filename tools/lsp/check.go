package lsp

import (
	"context"
	"slices"
)

const (
	// maxChecked is how many files of one edit are looked at.
	maxChecked = 10
	// maxChecks is how many edits may wait for one server. More come only where it is silent.
	maxChecks = 4
)

// An Edit is a file that was changed. Nil: there was none, or there is none now.
type Edit struct {
	Path     string
	Old, New []byte
}

// A Found is what is new in a file: errors that its content before the edit did not have.
type Found struct {
	Path  string
	Items []Problem

	client  *Client
	version int32
	text    string
}

// Holds says whether that is still about the content that the file has on the disk, as far as the server knows and the
// disk shows.
func (f Found) Holds() bool {
	text, _, ok := readText(f.Path)
	return ok && text == f.text && f.client.alive()
}

// check finds out which errors edits made. It makes the server's documents equal to the disk first, and holds the turn
// until it knows what was wrong before.
func (c *Client) check(ctx context.Context, edits []Edit, owed debts) ([]Found, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	before, now, err := c.submit(ctx, edits, owed)
	if err != nil {
		return nil, c.failure(ctx, err)
	}
	var all []Found
	for _, f := range now {
		r, err := c.report(ctx, f.Path, f.version)
		if err != nil {
			return nil, c.failure(ctx, err)
		}
		if f.Items = fresh(before[f.Path], r.Items); len(f.Items) > 0 {
			all = append(all, f)
		}
	}
	return all, nil
}

// submit tells the server of the edits. It returns what was wrong before with each file, and which versions have the
// new contents.
func (c *Client) submit(ctx context.Context, edits []Edit, owed debts) (before map[string][]Problem, now []Found,
	err error) {
	if err := c.take(ctx); err != nil {
		return nil, nil, err
	}
	defer c.leave()
	var paths []string
	for _, e := range edits {
		paths = append(paths, e.Path)
	}
	if err := c.docs.refresh(ctx, paths...); err != nil {
		return nil, nil, err
	}
	known := edits[:min(len(edits), maxChecked)]
	if before, err = c.before(ctx, known, owed); err != nil {
		return nil, nil, err
	}
	for i, e := range edits {
		text, err := Text(e.New)
		if e.New == nil || err != nil || len(e.New) > maxDocument {
			if err := c.docs.shut(ctx, e.Path); err != nil {
				return nil, nil, err
			}
			continue
		}
		if c.docs.open[e.Path] == nil && i >= len(known) {
			continue // the server reads it by itself, and was told so
		}
		if err := c.docs.set(ctx, e.Path, text, stamp{}); err != nil {
			return nil, nil, err
		}
		if err := c.docs.saved(ctx, e.Path); err != nil {
			return nil, nil, err
		}
		if _, compared := before[e.Path]; compared {
			now = append(now, Found{Path: e.Path, client: c, version: c.docs.open[e.Path].version, text: text})
		}
	}
	return before, now, nil
}

// before returns what was wrong with the files before they were edited. One that is not known is asked for: the server
// is shown the content that was. Where the errors of an earlier edit are owed, what was wrong before that one counts.
func (c *Client) before(ctx context.Context, edits []Edit, owed debts) (map[string][]Problem, error) {
	before := map[string][]Problem{}
	var ask []string
	for _, e := range edits {
		if items, ok := owed.of(e.Path); ok {
			before[e.Path] = items
			continue
		}
		if e.Old == nil {
			before[e.Path] = nil
			owed.owe(e.Path, nil)
			continue
		}
		text, err := Text(e.Old)
		if err != nil || len(e.Old) > maxDocument {
			continue
		}
		if err := c.docs.set(ctx, e.Path, text, stamp{}); err != nil {
			return nil, err
		}
		ask = append(ask, e.Path)
	}
	for _, path := range ask {
		version := c.docs.open[path].version
		r, _ := c.reports.of(path, version)
		if r == nil {
			var err error
			if r, err = c.report(ctx, path, version); err != nil {
				return nil, err
			}
		}
		before[path] = r.Items
		owed.owe(path, r.Items)
	}
	return before, nil
}

// fresh returns the errors of now that old does not have. Lines move, so one with the same words counts as the same, as
// often as it was there.
func fresh(old, now []Problem) (out []Problem) {
	type words struct{ code, message string }
	left := map[words]int{}
	for _, p := range old {
		if p.Severity == 1 {
			left[words{p.Code, p.Message}]++
		}
	}
	here := func(p Problem) bool {
		return slices.ContainsFunc(old, func(o Problem) bool {
			return o.Severity == 1 && o.Line == p.Line && o.Message == p.Message && o.Code == p.Code
		})
	}
	var later []Problem
	for _, p := range now {
		switch w := (words{p.Code, p.Message}); {
		case p.Severity != 1:
		case left[w] > 0 && here(p):
			left[w]--
		default:
			later = append(later, p)
		}
	}
	for _, p := range later {
		if w := (words{p.Code, p.Message}); left[w] > 0 {
			left[w]--
			continue
		}
		out = append(out, p)
	}
	return out
}
