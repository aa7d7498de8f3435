// Package relay takes HTTP requests of MCP to the node that serves their principal, and its answers back.
//
// The node that a client reached has authenticated the request and read its body; a Caller sends both as frames over a
// Wire. At the other end a Host makes an http.Request of them for the endpoint there, which has all that belongs to the
// principal: sessions, requests in flight, questions, streams. So nothing but the endpoint learns that there are
// several nodes. Who sent the request is looked up again there; no token travels.
//
// A Wire may lose messages, and nodes may die. Frames of one request are numbered in each direction, both ends send
// beats, and who misses one counts the other as lost. What the other end did is not known then, so nothing is sent
// again here: who calls Do may, with the name of the request by which the other end knows it (Target.Call).
package relay
