// Package places gives a call its places: in the queues of its principal, and at the gate of its session. It says why
// the call may not be made, or not now.
//
// All places are taken in one step, so that calls which arrive together stand in the same order everywhere.
package places
