// Package engines makes each engine that the settings of the operator say something about.
package engines

import (
	"log/slog"

	"codehand/server/config"
)

// Options say of which process the engines are.
type Options struct {
	Config  config.Config
	Version string // of codehand; "": it is unknown
	Log     *slog.Logger
	Serve   bool // the process serves HTTP
}
