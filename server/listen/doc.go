// Package listen owns the addresses of serve: TCP, unix sockets, sockets that systemd opened, TLS with certificates
// that are reloaded, and the limit of connections over all of them.
//
// Check refuses an unsafe configuration before an address is bound. Settle decides how callers are
// authenticated, and WhyShared says whether others than the person who started serve can connect. Open binds all
// addresses or none.
//
// It never reads a byte of a request and never asks who is calling.
package listen
