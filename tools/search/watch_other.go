//go:build !linux

package search

import "codehand/tools/search/index"

// A watcher is for Linux.
type watcher struct{}

func (folder) tells() bool { return false }

func newWatcher() *watcher { return nil }

func (*watcher) drain() {}

func (*watcher) since(folder, index.ID) uint64 { return 0 }

func (*watcher) close() {}

func (*watcher) watched() int { return 0 }
