package main

import (
	"net"
	"reflect"
	"testing"

	"codehand/server/config"
	"codehand/server/doctor"
)

// TestDoctorProxy: a proxy that takes connections is good and is sent nothing, with a name as with an address; one that
// has stopped is a warning.
func TestDoctorProxy(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String()) // it is an address
	received := make(chan int, 2)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				close(received)
				return
			}
			n, _ := conn.Read(make([]byte, 1)) // it ends when the other side closes
			received <- n
			_ = conn.Close()
		}
	}()
	for _, proxy := range []string{"socks5://127.0.0.1:" + port, "http://localhost:" + port} {
		cfg := config.Config{Web: config.Web{Enabled: true, Proxy: proxy}}
		want := []doctor.Finding{
			{ID: "web", Level: doctor.OK, Text: "pages are fetched through " + proxy},
			{ID: "web", Level: doctor.OK, Text: "trusted: certificates of the system"},
		}
		if got := checkWeb(t.Context(), cfg, []string{"HTTPS_PROXY=http://x"}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", proxy, got)
		}
		if n := <-received; n != 0 {
			t.Errorf("%s was sent something", proxy)
		}
	}
	_ = l.Close()
	<-received
	cfg := config.Config{Web: config.Web{Enabled: true, Proxy: "socks5://127.0.0.1:" + port}}
	if got := checkWeb(t.Context(), cfg, nil); got[0].Level != doctor.Warn || got[0].Fix == "" {
		t.Errorf("when it has stopped: %+v", got[0])
	}
}
