// Package language asks language servers on behalf of a session: which server knows a file, how it is started and
// confined, what of its answers the session may see, and which errors an edit has made. What the protocol is and how
// long servers live is in tools/lsp.
package language
