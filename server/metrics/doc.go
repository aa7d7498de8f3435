// Package metrics owns what Prometheus and load balancers may ask of a process:
// the numbers behind /metrics, and the answers of /healthz and /readyz.
//
// Counts are the numbers that grow, Gauges what is asked when somebody scrapes,
// and Health runs the checks that readiness depends on.
//
// It never asks who is calling, which is for the caller to do before, and no
// label ever holds what a client wrote.
package metrics
