package engines

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"codehand/tools/confine/caches"
)

// tidyFirst and tidyEvery are when the caches of commands are bounded: not while a process begins its work, and not
// often, since all files are looked at.
const (
	tidyFirst = time.Minute
	tidyEvery = time.Hour
)

// tidy keeps the caches of commands within their size, while a process runs.
type tidy struct {
	end  context.CancelFunc
	done chan struct{}
}

// begin starts that, for the caches of all principals in dir. It must be closed.
func (t *tidy) begin(dir string, most int64, log *slog.Logger) {
	ctx, end := context.WithCancel(context.Background())
	t.end, t.done = end, make(chan struct{})
	go func() {
		defer close(t.done)
		for wait := tidyFirst; ; wait = tidyEvery {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
			tidyAll(ctx, dir, most, log)
		}
	}()
}

func (t *tidy) close() {
	t.end()
	<-t.done
}

// tidyAll bounds the caches of each principal. Those that a command uses are left until the next time.
func tidyAll(ctx context.Context, dir string, most int64, log *slog.Logger) {
	all, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		log.Warn("the caches of commands are not bounded", "cause", err.Error())
	}
	for _, c := range all {
		if !c.IsDir() {
			continue
		}
		freed, err := caches.Trim(ctx, filepath.Join(dir, c.Name()), most)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !errors.Is(err, caches.ErrInUse):
			log.Warn("the caches of commands are not bounded", "cause", err.Error())
		case err == nil && freed > 0:
			log.Info("removed the oldest of the caches of commands", "bytes", freed)
		}
	}
}
