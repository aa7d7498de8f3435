package filestate

import "context"

// Paths returns the files that the session has seen or changed, at most limit, those used last first. What an earlier
// process or another replica noted comes after what this process knows, in no order. The error is ErrMemory.
func (l *Ledger) Paths(ctx context.Context, limit int) ([]string, error) {
	keys, err := l.records.recent(ctx)
	if err != nil {
		return nil, lost(err)
	}
	var paths []string
	for _, key := range keys {
		if len(paths) >= limit {
			break
		}
		path, err := l.records.pathOf(ctx, key)
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
func (r *records) recent(ctx context.Context) ([]string, error) {
	stored, err := r.memory.Keys(ctx, family)
	if err != nil {
		return nil, err
	}
	left := make(map[string]bool, len(stored))
	for _, key := range stored {
		left[key] = true
	}
	keys := make([]string, 0, len(stored))
	r.mu.Lock()
	for e := r.age.Front(); e != nil; e = e.Next() {
		if key := e.Value.(string); left[key] { // else another replica has forgotten it
			delete(left, key)
			keys = append(keys, key)
		}
	}
	r.mu.Unlock()
	for _, key := range stored {
		if left[key] {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// pathOf returns the path whose record has this key; "": there is none any more. The Memory is asked once for each, as a
// path never changes. Errors are ErrMemory.
func (r *records) pathOf(ctx context.Context, key string) (string, error) {
	r.mu.Lock()
	path, known := r.paths[key]
	r.mu.Unlock()
	if known {
		return path, nil
	}
	rec, err := r.get(ctx, key)
	if err != nil || rec == nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.name(key, rec.Path)
	return rec.Path, nil
}

// name remembers which path a key is of. The caller holds mu.
func (r *records) name(key, path string) {
	if r.paths == nil || len(r.paths) >= 2*maxFiles { // what another replica has forgotten is never taken out here
		r.paths = make(map[string]string)
	}
	r.paths[key] = path
}
