package seen

import (
	"cmp"
	"context"
)

// Paths returns the paths that have a record, at most limit, those used last first. What an earlier process or another
// replica noted comes after what this process knows, in no order. The error is ErrMemory.
func (r *Records) Paths(ctx context.Context, limit int) ([]string, error) {
	keys, err := r.recent(ctx)
	if err != nil {
		return nil, lost(err)
	}
	var paths []string
	for _, key := range keys {
		if len(paths) >= limit {
			break
		}
		path, err := r.pathOf(ctx, key)
		if err != nil {
			return nil, err
		}
		if path != "" {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// recent returns the keys of all records, those used last first.
func (r *Records) recent(ctx context.Context) ([]string, error) {
	stored, err := r.memory.Keys(ctx, family)
	if err != nil {
		return nil, err
	}
	there := make(map[string]bool, len(stored))
	for _, key := range stored {
		there[key] = true
	}
	keys := make([]string, 0, len(stored))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.adopt(stored)
	for e := r.age.Front(); e != nil; e = e.Next() {
		if key := e.Value.(*use).key; there[key] { // else another replica has forgotten it
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// pathOf returns the path whose record has this key; "": there is none any more. The Memory is asked once for each, as
// a path never changes. Errors are ErrMemory.
func (r *Records) pathOf(ctx context.Context, key string) (string, error) {
	if path := r.name(key, ""); path != "" {
		return path, nil
	}
	rec, err := r.get(ctx, key)
	if err != nil || rec == nil {
		return "", err
	}
	return r.name(key, rec.Path), nil
}

// name returns the path that a key is known to be of, else path, which is known from then on.
func (r *Records) name(key, path string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.byID[key]
	if !ok { // it was forgotten just now
		return path
	}
	u := e.Value.(*use)
	u.path = cmp.Or(u.path, path)
	return u.path
}
