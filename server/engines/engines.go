// Package engines makes the engines of a process, which all its sessions share, by the settings of the operator.
package engines

import (
	"io"
	"log/slog"
	"time"

	"codehand/server/config"
	"codehand/server/toolset"
	"codehand/tools"
	"codehand/tools/agent/loop"
	"codehand/tools/past"
	"codehand/tools/sandbox"
	"codehand/tools/tool"
)

// Options say of which process the engines are.
type Options struct {
	Config config.Config
	// Tools makes the tools, from the engines that it is handed; nil: there are none.
	Tools   func(tools.Engines) []tool.Tool
	Sources []toolset.Source // of further tools, which can change while the server runs
	Version string           // of codehand; "": it is unknown
	Log     *slog.Logger     // nil: nothing is logged
	Serve   bool             // the process serves HTTP: the state is durable
	// Principal: calls are those of a principal of serve, whose directories these are. serve may run meanwhile.
	Principal bool
	Echo      io.Writer // gets what commands print, as it comes; nil: nothing does
	// Proven says how far this machine confines commands; nil: it is probed when a command first needs to know, and
	// serve for others at once.
	Proven func() sandbox.Report

	// Past is what is on record of calls and sessions; nil: nothing is. It is asked when the process serves.
	Past past.Records

	Model     loop.Model    // takes the place of that of agent.api, for tests; nil: none does
	StoreTime time.Duration // bounds one operation of the Store with its retries; 0: 2 s
}
