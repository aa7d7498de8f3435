// Package logging makes the log of the process, and owns how it reaches a stream that may stand still.
//
// A client reads standard error when it likes, and some never do: a full pipe then
// holds whoever writes to it for ever. So a line is never waited for where it is
// made. Writer keeps it for a goroutine, and drops what finds no room. This room
// never decides what is logged, and reads no setting.
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
