package server

import (
	"fmt"
	"strings"
	"testing"

	"codehand/server/auth"
	"codehand/server/jsonrpc"
	"codehand/server/replaytest"
	"codehand/server/request"
	"codehand/server/sessions"
)

// BenchmarkServe is what a call of serve costs from the request to the answer: scan, session, pipeline, audit, metrics. The
// call is that of BenchmarkHTTPRoundTrip; BenchmarkHTTPHandler measures the endpoint before and after it.
func BenchmarkServe(b *testing.B) {
	mode := "bypassPermissions"
	quota := map[string]string{}
	for _, q := range []string{"calls_per_minute", "burst", "requests_per_minute", "bytes_in_per_minute", "bytes_out_per_minute"} {
		quota[q] = "0"
	}
	x := serveHTTP(b, siteSetup{
		principals: []string{"bench"}, values: map[string]auth.Values{"bench": {Mode: &mode, MaxMode: &mode, Quota: quota}},
		settings: map[string]string{"sandbox.policy": "off"},
	})
	c := x.client("bench").Hello()
	started, failed := c.Call("1", "run_shell", `{"command":"true","run_in_background":true}`, "").Text()
	if failed {
		b.Fatal(started)
	}
	args := fmt.Sprintf(`{"job_id":%q`, replaytest.JobID.FindString(started))
	for said := ""; !strings.Contains(said, "no new output"); {
		if said, failed = c.Call("2", "job_output", args+`,"block":true}`, "").Text(); failed {
			b.Fatal(said)
		}
	}
	body := []byte(replaytest.CallLine(3, "job_output", args+"}", ""))
	who, err := x.server.team.Porter.Authenticate(c.Request(b.Context(), "POST", c.URL, string(body)))
	must(b, err)
	at, err := x.server.team.Tenants.Of(who)
	must(b, err)
	limits := x.server.team.Porter.Limits(who)

	b.ReportAllocs()
	for b.Loop() {
		env, bad := jsonrpc.Scan(body)
		if bad != nil {
			b.Fatal(bad.Message)
		}
		key, err := sessions.HTTPKey(who, env, "", sessions.ByHTTP+c.Session)
		must(b, err)
		work, _ := x.server.calls.Serve(request.Request{
			Envelope: env, Message: body, Tenant: at, Session: key, Peer: noPeer{}, Caller: request.Caller{Limits: limits},
		})
		if a := work(b.Context()); a.Err != nil || !strings.Contains(string(a.Result), "no new output") {
			b.Fatalf("%s %v", a.Result, a.Err)
		}
	}
}
