// http3 CERTIFICATE KEY: HTTP/3 at the addresses of eight hosts, in front of the page's server without TLS.
package main

import (
	"fmt"
	"log"
	"net/http/httputil"
	"net/url"
	"os"

	"github.com/quic-go/quic-go/http3"
)

func main() {
	proxy := &httputil.ReverseProxy{Rewrite: func(request *httputil.ProxyRequest) {
		request.SetURL(&url.URL{Scheme: "http", Host: "127.0.0.1:8080"})
		request.Out.Host = request.In.Host
	}}
	for host := 0; host < 8; host++ {
		address := fmt.Sprintf("10.50.2.1%d:443", host)
		go func() { log.Fatal(http3.ListenAndServeQUIC(address, os.Args[1], os.Args[2], proxy)) }()
	}
	select {}
}
