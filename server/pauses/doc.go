// Package pauses remembers whose calls a person has paused, until a person resumes them: also when the process ends,
// and on all machines that share a Store.
//
// A Table keeps that in the Store, for serve. A Dir keeps it in a file of the state directory, which all processes of a
// user look at. Where it cannot be read, calls are paused. It decides who may end a pause; who a person is, and that no
// program stands in for one, its callers know. No tool reaches it.
package pauses
