// Package running has what the tools for commands and jobs share: the checks before a command starts, waiting for it,
// how it starts, and the texts about how it ended. It starts nothing itself: tools/shell does.
package running
