// Package peers says which user of this machine is at the other end of a connection, so that serve can be one person's
// without a token. It knows no principal and no token.
package peers
