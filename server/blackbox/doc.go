// Package blackbox holds the tests that start the built program, as clients, operators and proxies do. It has no code of the
// product and uses none of its names but those that say how the product is to be read: configuration, the check of the
// record, modes.
package blackbox
