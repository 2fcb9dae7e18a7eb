// A server with the fault, `server KIND apart`, or its fixed twin, `server KIND whole`. Prints its port.
// KIND: h1, tls, h2, grpc, by net/http. Go sets TCP_NODELAY itself: the fault is to take it back, as a proxy of small
// frames does, and to flush the headers alone.
package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"os"
)

type nagle struct{ net.Listener }

func (l nagle) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if tcp, ok := connection.(*net.TCPConn); ok {
		tcp.SetNoDelay(false)
	}
	return connection, err
}

func main() {
	kind, apart := os.Args[1], os.Args[2] == "apart"
	body := make([]byte, 600)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		flush := func() {
			if apart {
				w.(http.Flusher).Flush()
			}
		}
		if kind == "grpc" {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Trailer", "Grpc-Status")
			w.WriteHeader(200)
			flush()
			head := make([]byte, 5)
			binary.BigEndian.PutUint32(head[1:], 600)
			w.Write(append(head, body...))
			flush()
			w.Header().Set("Grpc-Status", "0")
			return
		}
		w.Header().Set("Content-Length", "600")
		w.WriteHeader(200)
		flush()
		w.Write(body)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	if apart {
		listener = nagle{listener}
	}
	server := &http.Server{Handler: handler, Protocols: new(http.Protocols)}
	if kind == "h2" || kind == "grpc" {
		server.Protocols.SetUnencryptedHTTP2(true)
	} else {
		server.Protocols.SetHTTP1(true)
	}
	if kind == "tls" {
		err = server.ServeTLS(listener, os.Getenv("GATE_CERT"), os.Getenv("GATE_KEY"))
	} else {
		err = server.Serve(listener)
	}
	panic(err)
}
