// Package session has the type State: what the calls of one session may use. It holds data and does no work.
//
// A State is passed to tools, never looked up. It has two kinds of fields. A Cell is a small persistent value in the
// Store. All others are handles of engines (ledger, shell, search ...), which can be dropped and made again without
// losing anything.
package session
