// Package logging makes the log of the process, and writes it to a stream that may block.
//
// A client reads standard error when it likes, and some never do: a write to a full pipe then blocks for ever. So the
// code that logs a line never waits for the write. Writer queues the line for a goroutine, and drops it if the queue is
// full. The package never decides what is logged, and reads no setting.
package logging

import (
	"io"
	"log/slog"
	"os"
)

// New makes a logger that writes lines from level on to w, or to file unless it is "". The file is made if there is
// none (0600), and is written to before a call that logs returns.
func New(w io.Writer, file string, level slog.Level) (*slog.Logger, error) {
	if file != "" {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		w = f
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})), nil
}
