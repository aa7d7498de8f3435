package media

import (
	"context"
	"runtime"
)

const (
	roomSize = 100 // MiB of files that are held at a time
	smallest = 1 << 20
)

// A room has so many places for MiB. Who wants several waits for them at the door, so that those who want few do not
// pass by for ever.
type room struct {
	door   turns // one
	places turns // roomSize
}

func newRoom() *room { return &room{make(turns, 1), make(turns, roomSize)} }

// enter is Reader.Hold.
func (r *room) enter(ctx context.Context, size int64) (leave func(), err error) {
	if size < smallest {
		return func() {}, nil
	}
	if err := r.door.wait(ctx); err != nil {
		return nil, err
	}
	defer r.door.leave()
	want := int(min((size-1)>>20+1, roomSize))
	for n := range want {
		if err := r.places.wait(ctx); err != nil {
			r.leave(n)
			return nil, err
		}
	}
	return func() {
		if size > worthCollecting {
			runtime.GC() // else the next file comes on top of this one
		}
		r.leave(want)
	}, nil
}

func (r *room) leave(places int) {
	for range places {
		r.places.leave()
	}
}
