// Package public proves that a URL on the open network reaches this process, and knows how people put one there.
//
// The server answers a challenge at Path with a signature under a key that only its process has (Prover). Check sends
// such a challenge to the URL from outside, as a client would, and says what it met instead. Ways and Chats are what a
// person does to get a URL, and where a person pastes it.
//
// It opens no listener, knows no token and stores nothing.
package public
