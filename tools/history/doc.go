// Package history shows the journal of changes to a session: which changes it may see, each as a line or a diff, and
// how a change is taken back or why it is not. The journal itself and the undo are in filestate.
package history
