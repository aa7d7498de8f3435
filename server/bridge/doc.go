// Package bridge owns `codehand connect`: it passes the messages of one client on a pair of pipes to a remote endpoint
// over HTTP, and the endpoint's messages back.
//
// Run passes messages on in the order in which they arrived. It sends again what was not delivered, starts a new
// session if the endpoint has lost the old one, and reopens broken streams. It repeats a call only where that cannot do
// anything twice.
//
// It never answers for a tool. It changes nothing in a message but the key of a call and the id of an answer.
package bridge
