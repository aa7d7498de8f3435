package session

import (
	"context"
	"slices"
)

// Activate adds names to the tools that a session has found, and says whether one of them is new.
func Activate(ctx context.Context, found Cell[[]string], names []string) (changed bool, err error) {
	_, err = found.Change(ctx, func(old []string) ([]string, error) {
		all := slices.Compact(slices.Sorted(slices.Values(slices.Concat(old, names))))
		changed = !slices.Equal(all, old)
		return all, nil
	})
	return changed && err == nil, err
}
