// Package tenants has what one principal may use: roots and rules, listed tools, shared task lists, and the roots to
// which a client narrows them.
//
// A Tenant is made once for each set of rights and does not change, so requests share it without a lock. The package
// decides nothing about a call: server/pipeline decides, by the rules of the Tenant.
package tenants
