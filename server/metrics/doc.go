// Package metrics answers Prometheus and load balancers: the numbers behind /metrics, and the pages /healthz and
// /readyz.
//
// Counts only grow. Gauges are read when Prometheus scrapes. Health runs the checks that readiness depends on.
//
// It never asks who is calling; its caller has done that before. No label ever holds what a client wrote.
package metrics
