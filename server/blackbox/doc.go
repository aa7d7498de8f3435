// Package blackbox holds the tests that start the built program, as clients, operators and proxies do. It has no code
// of the product. Of the product's packages it uses only those that read its output: configuration, the check of the
// audit, modes.
package blackbox
