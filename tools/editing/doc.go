// Package editing has what the tools that change files share: applying edits to one file or to several, all or none;
// and the texts for what filestate (the ledger) answers, such as that a file was not read or has changed. It changes no
// file and judges no path itself: filestate makes every change and decides whether a file was read before, workspace
// decides about paths.
package editing
