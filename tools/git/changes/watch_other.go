//go:build !linux

package changes

import "errors"

var errNoWatch = errors.New("no more directories can be watched")

// A watch is Linux's. Elsewhere each look goes over all files.
type watch struct{}

func newWatch(string) *watch { return nil }

func (*watch) close() {}

func (*watch) add(string) error { return nil }

func (*watch) remove(string) {}

func (*watch) changed() (files, dirs []string, whole bool) { return nil, nil, false }
