// Package bridge owns `codehand connect`: one client on a pair of pipes, whose
// messages go to a remote endpoint over HTTP, and what comes from there back.
//
// Run passes messages on in the order in which they came. It repeats what was
// not delivered, begins a session again that the endpoint has lost, and opens
// streams again that broke. A call is only repeated where that cannot do
// anything twice.
//
// It never answers for a tool, and never changes a message but for the key of a
// call and the id of an answer.
package bridge
