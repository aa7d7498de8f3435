// Package live lets the page of one process reach the other processes of the same user: what waits for a person there,
// and which commands run.
//
// Each process listens on a socket of its own in one private directory (Serve). A page follows them all (Hub), as long
// as a person has it open. Only programs of this user are answered, and none of the commands that codehand confines; a
// system that does not say who connects has no sockets. It owns the sockets and what is said on them, and decides
// nothing: what an answer of a person means, the process knows to which it is given.
package live
