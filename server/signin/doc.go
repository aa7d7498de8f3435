// Package signin is what people see in a browser: where they sign in, decide what a client may do for them, accept an
// invitation, and end what they allowed. Its pages are below /signin/ and need no script; a small one of our own asks
// the browser for a passkey.
//
// It owns the pages, browser sessions, passkey ceremonies, and the limits on guessing. It keeps no credentials
// (server/people does), and knows nothing of OAuth but what server/oauth tells of a sign-in that waits. Nothing that a
// page is sent decides where a browser goes: that is in the Ask alone.
package signin
