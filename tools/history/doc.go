// Package history shows the journal of changes to a session: which ones it may see, each as a line or a diff, and how a
// change is taken back or why it is not. The journal and the undo themselves are filestate's.
package history
