// Package limits counts what a principal uses and says when it must wait: calls, requests and bytes of a minute,
// commands and streams at once, failed authentications of an address.
//
// A Quota has the numbers. A Limiter is the Quota of one principal in use: all its tokens and sessions share it. What
// waits for its turn is served strictly in the order in which it came.
//
// It knows no token, no HTTP and no session: a principal is a name, and an OverError says what is used up and for how
// long. The caller decides how a client is told. Nothing is kept on disk: a restart forgets what was used.
package limits
