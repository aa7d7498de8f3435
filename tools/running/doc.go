// Package running has what the tools for commands and jobs share: what must hold before a command starts, waiting for
// it, and putting what became of it into words. It starts nothing itself: that is the room shell's.
package running
