// Package nodes says which of several processes that share a Store serves a principal.
//
// A node keeps a record that ends 6 s after it was renewed last. A place for each principal says which node has its
// workspace. It is made when the principal calls first, by compare-and-swap, so all nodes agree on it; then it stays
// until an operator moves it. The room knows no requests: server/relay takes them from node to node.
package nodes
