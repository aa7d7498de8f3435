// Package nodes says which of several processes that share a Store serves a principal.
//
// A node keeps a record that ends 6 s after it was renewed last. A place for each principal says which node has its
// workspace. It is made when the principal calls first, by compare-and-swap, so all nodes agree on it. Where each node
// has workspaces of its own, it stays until an operator moves it. Where all have the same ones (shared.go), it also
// moves when its node dies or drains. The room knows no requests: server/relay takes them from node to node.
package nodes
